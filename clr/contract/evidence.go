package contract

import "fmt"

// Evidence counts how well the runtime's own tables agree with an assumed layout: the code in its code heaps,
// and how much of it passes each check of circular references.
type Evidence struct {
	Heaps  int // code heaps whose bounds agree with their section
	Images int // precompiled images whose Module refers to their section

	Starts   int // code that begins in a code heap
	Methods  int // of Starts: code with a header
	Agreeing int // of Methods: functions, unwind data, MethodDesc, and debug information agree
	Proofs   int // distinct MethodDescs of Agreeing methods that refer to their code

	Map     int  // contradictions in the map, its sections, heaps, images, and nibble maps
	Headers int  // inconsistent code headers
	Spent   bool // the budget of reads ran out
}

// An assumed layout is proven by fewProofs methods if a precompiled image confirms the sections, otherwise by
// manyProofs.
const (
	fewProofs  = 1
	manyProofs = 3
)

// toleratedHeaders is the number of agreeing methods needed for each inconsistent code header: the runtime
// may be writing a header at this moment.
const toleratedHeaders = 8

// contradicts reports whether the assumed layout must be wrong. The map of a right layout is always
// consistent.
func (e *Evidence) contradicts() bool {
	return e.Map > 0 || toleratedHeaders*e.Headers > e.Agreeing
}

// parts returns what the evidence proves if there is no contradiction.
func (e *Evidence) parts() (p part) {
	switch {
	case e.Proofs >= fewProofs && e.Images > 0, e.Proofs >= manyProofs:
		p = partMap | partHeaps
	case e.Images > 0 && e.Heaps > 0 && e.Starts > 0 && e.Methods == 0:
		p = partMap
	}
	if p != 0 && e.Images > 0 {
		p |= partImages
	}
	return p
}

// enough reports whether more evidence would change nothing.
func (e *Evidence) enough() bool { return e.Starts >= enoughStarts && e.Proofs >= manyProofs }

// String summarizes the evidence in one line.
func (e Evidence) String() string {
	switch {
	case e.Map > 0:
		return fmt.Sprintf("%d of its structures contradict the layout that is known for its release", e.Map)
	case e.contradicts():
		return fmt.Sprintf("%d of its %d code headers contradict the layout that is known for its release",
			e.Headers, e.Methods)
	case e.Starts == 0:
		return "it has compiled no method yet"
	}
	return fmt.Sprintf("%d of its %d compiled methods agree with the layout that is known for its release",
		e.Proofs, e.Methods)
}

package contract

import "fmt"

// Evidence counts what the runtime's own tables say about a supposed layout: the code in
// its code heaps, and how much of it closes each circle of references.
type Evidence struct {
	Reads int // pages and parts of pages that were read

	Sections int // range sections that agree with themselves
	Heaps    int // code heaps whose bounds agree with their section
	Images   int // precompiled images whose Module leads back to their section

	Starts   int // code that begins in a code heap
	Stubs    int // of Starts: blocks of stubs
	Methods  int // of Starts: code with a header
	Agreeing int // of Methods: functions, unwind data, MethodDesc, and debug information agree
	Proofs   int // distinct MethodDescs of Agreeing methods that lead back to their code

	Map     int  // contradictions in the map, its sections, heaps, images, and nibble maps
	Headers int  // code headers that contradict themselves
	Spent   bool // the budget of reads was spent before all was seen
}

// A supposed layout is proven by fewProofs methods where a precompiled image confirms the
// sections, otherwise by manyProofs.
const (
	fewProofs  = 1
	manyProofs = 3
)

// toleratedHeaders is the number of agreeing methods for each code header that may
// contradict: the runtime may be writing it at this moment.
const toleratedHeaders = 8

// contradicts reports whether the supposed layout cannot be right. The map never
// contradicts itself.
func (e *Evidence) contradicts() bool {
	return e.Map > 0 || toleratedHeaders*e.Headers > e.Agreeing
}

// parts returns what the evidence proves if nothing contradicts.
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

// String says in one line what was found, for a person.
func (e Evidence) String() string {
	switch {
	case e.Map > 0:
		return fmt.Sprintf("%d of its structures contradict the layout that is known for its release", e.Map)
	case e.contradicts():
		return fmt.Sprintf("%d of its %d code headers contradict the layout that is known for its release", e.Headers, e.Methods)
	case e.Starts == 0:
		return "it has compiled no method yet"
	}
	return fmt.Sprintf("%d of its %d compiled methods agree with the layout that is known for its release", e.Proofs, e.Methods)
}

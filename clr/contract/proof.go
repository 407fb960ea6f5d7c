package contract

// part is a part of the runtime's tables whose layout can be proven by itself.
type part uint8

const (
	partMap    part = 1 << iota // the range map and its sections
	partHeaps                   // code heaps: nibble maps and code headers
	partImages                  // precompiled images
	allParts   = partMap | partHeaps | partImages
)

// proof says how far a layout has been proven. A published layout needs no proof.
type proof struct {
	proven         part
	refuted        bool
	wanted         bool   // a lookup met a part that is not proven, since the last Verify
	contradictions int    // Verify calls in a row that met a contradiction
	dac            uint64 // the debugger's table of a supposed layout, 0 = none
	evidence       Evidence
}

// maxContradictions is how many Verify calls in a row must meet a contradiction before the
// layout is refuted. A single one can be a race with the running process.
const maxContradictions = 16

// Proven reports whether code that was compiled at run time can be looked up.
func (p *proof) Proven() bool { return p.proven&(partMap|partHeaps) == partMap|partHeaps }

// MapProven reports whether the range map is proven. Lookups of precompiled code are
// answered then, lookups of other code only if Proven.
func (p *proof) MapProven() bool { return p.proven&partMap != 0 }

// Refuted reports whether the runtime has another layout than supposed. The Tables answers
// no lookup any more.
func (p *proof) Refuted() bool { return p.refuted }

// Undecided reports whether a call of Verify may prove more than is proven now.
func (p *proof) Undecided() bool {
	return !p.refuted && p.proven != allParts && (!p.Proven() || p.wanted)
}

// Evidence returns what the last Verify has found.
func (p *proof) Evidence() Evidence { return p.evidence }

// answers reports whether lookups in a part are answered, and notes that one was asked for.
func (p *proof) answers(x part) bool {
	if p.proven&x == 0 {
		p.wanted = true
		return false
	}
	return true
}

// decide takes what one Verify has found.
func (p *proof) decide(e Evidence) {
	p.evidence, p.wanted = e, false
	if !e.contradicts() {
		p.contradictions = 0
		p.proven |= e.parts()
		return
	}
	if p.contradictions++; p.contradictions >= maxContradictions && p.proven == 0 {
		p.refuted = true
	}
}

// Verify lets the runtime's own tables prove a supposed layout, as far as they can by now.
// It reads a bounded number of pages and needs no stack.
func (t *Tables) Verify() {
	if t.Undecided() {
		t.decide(t.collect())
	}
}

// Confirm compares the lookup of ip with the method the CLR says is there
// (its FunctionID, which is the MethodDesc's address). The first agreement
// proves a supposed layout. Any contradiction refutes it.
func (t *Tables) Confirm(ip, function uint64) {
	if t.proven != 0 || t.refuted {
		return
	}
	t.proven = allParts
	var m Method
	reason := t.Find(ip, &m)
	switch {
	case reason == Found && m.Kind == JIT && m.MethodDesc == function:
	case reason == Found && m.Kind == JIT, reason == Malformed:
		t.proven, t.refuted = 0, true
	default:
		t.proven = 0 // precompiled code proves nothing
	}
	clear(t.cache)
}

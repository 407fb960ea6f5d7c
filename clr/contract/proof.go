package contract

// part is a part of the runtime's tables whose layout can be verified separately.
type part uint8

const (
	partMap    part = 1 << iota // the range map and its sections
	partHeaps                   // code heaps: nibble maps and code headers
	partImages                  // precompiled images
	allParts   = partMap | partHeaps | partImages
)

// proof is the state of a layout's verification. A published layout needs none.
type proof struct {
	proven         part
	refuted        bool
	wanted         bool   // since the last Verify, a lookup met an unverified part
	contradictions int    // consecutive Verify calls that met a contradiction
	dac            uint64 // the debugger's table of an assumed layout, 0 = none
	evidence       Evidence
}

// maxContradictions is how many consecutive Verify calls must meet a contradiction before the layout is
// refuted. A single contradiction can be a race with the running process.
const maxContradictions = 16

// Proven reports whether jitted code can be looked up.
func (p *proof) Proven() bool { return p.proven&(partMap|partHeaps) == partMap|partHeaps }

// MapProven reports whether the range map is verified. Then lookups of precompiled code are answered; lookups
// of other code need Proven.
func (p *proof) MapProven() bool { return p.proven&partMap != 0 }

// Refuted reports whether the runtime's layout differs from the assumed one. The Tables answers no further
// lookup.
func (p *proof) Refuted() bool { return p.refuted }

// Undecided reports whether another Verify may prove more.
func (p *proof) Undecided() bool {
	return !p.refuted && p.proven != allParts && (!p.Proven() || p.wanted)
}

// Evidence returns the result of the last Verify.
func (p *proof) Evidence() Evidence { return p.evidence }

// answers reports whether lookups in a part are answered, and records that one was requested.
func (p *proof) answers(x part) bool {
	if p.proven&x == 0 {
		p.wanted = true
		return false
	}
	return true
}

// decide updates the state from the result of one Verify.
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

// Verify checks an assumed layout against the runtime's own tables, as far as that is possible by now. It
// reads a bounded number of pages and needs no stack.
func (t *Tables) Verify() {
	if t.Undecided() {
		t.decide(t.collect())
	}
}

// Confirm compares the lookup of ip with the CLR's answer (its FunctionID, which is the MethodDesc's
// address). The first agreement proves an assumed layout. Any contradiction refutes it.
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

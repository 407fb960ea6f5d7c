package contract

// Descriptor is what the runtime publishes of itself.
func (t *Tables) Descriptor() *Descriptor { return t.desc }

// Global is the address of a variable of the runtime that the descriptor names.
func (t *Tables) Global(name string) (uint64, bool) {
	g, ok := t.desc.Globals[name]
	if !ok || !g.Indirect || g.Value >= uint64(len(t.pointers)) {
		return 0, false
	}
	return t.pointers[g.Value], true
}

// A layout that is only supposed is proven without the CLR when so many methods
// have been found by it that something else knows; it is refuted by so many
// doubts without one.
const (
	proofs    = 3
	maxDoubts = 16
)

// Prove looks the method at ip up, which follows a call or was interrupted in
// code of the runtime's making, and asks is whether its MethodDesc is one.
// It must rest on what the runtime publishes. Methods that agree make a
// supposed layout known.
func (t *Tables) Prove(ip uint64, is func(desc uint64) bool) {
	if t.state != supposed {
		return
	}
	var m Method
	t.state = known
	reason := t.Find(ip, &m)
	t.state = supposed
	clear(t.cache)
	switch {
	case reason == Found && m.Kind == JIT && is(m.MethodDesc):
		if t.agreed == nil {
			t.agreed = map[uint64]bool{}
		}
		t.agreed[m.MethodDesc] = true
	case reason == Found && m.Kind == JIT, reason == Malformed:
		t.doubts++
	}
	switch {
	case len(t.agreed) >= proofs:
		t.state = known
	case t.doubts >= maxDoubts && len(t.agreed) == 0:
		t.state = refuted
	}
}

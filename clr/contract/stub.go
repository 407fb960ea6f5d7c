package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/unwind"
)

// stub leaves a stub of the runtime in which a thread was interrupted: it has
// no frame, and jumps on to a method. e is nil for code that no range section
// covers (write barriers, call counting). Only managed code is believed to have
// called it, but for precodes, which the runtime itself calls.
//
// The VSD resolve stub pushes one register and pops it again.
func (x *execution) stub(e *located) (unwind.Trust, unwind.Stop) {
	if x.returnsToMethod(x.sp) {
		return unwind.TrustLeaf, unwind.StopNone
	}
	if e == nil || e.Stub == StubImageSection {
		return unwind.TrustNone, unwind.NoInfo
	}
	if e.Stub == StubVSDResolve && x.returnsToMethod(x.sp+8) {
		x.sp += 8
	}
	return unwind.TrustLeaf, unwind.StopNone
}

// returnsToMethod reports whether the word at sp is an address in a method.
func (x *execution) returnsToMethod(sp uint64) bool {
	ra, ok := x.mem.Word(sp)
	if !ok {
		return false
	}
	var m Method
	return x.t.Find(ra, &m) == Found && m.Kind != Stub
}

// maxThread is how much of a Thread object is searched for hijack fields.
const maxThread = 512

// Hijacked gives the true return address that the runtime has replaced in the
// stack slot at slot, false if the Thread object at thread says nothing of it.
// The two words are found by their values: the true address, which must be a
// method's, and behind it the slot's address.
func (t *Tables) Hijacked(thread, slot uint64) (ra uint64, ok bool) {
	if t.state != known || slot == 0 {
		return 0, false
	}
	var object [maxThread]byte // a copy: the look-ups reuse the view's buffer
	b, ok := t.v.bytes(thread, maxThread)
	if !ok {
		return 0, false
	}
	copy(object[:], b)
	for i := 8; i < maxThread; i += 8 {
		if binary.LittleEndian.Uint64(object[i:]) != slot {
			continue
		}
		var m Method
		if ra = binary.LittleEndian.Uint64(object[i-8:]); t.Find(ra, &m) == Found && m.Kind != Stub {
			return ra, true
		}
	}
	return 0, false
}

package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/unwind"
)

// stub leaves a stub of the runtime in which a thread was interrupted: it has
// no frame, and jumps on to a method. e is nil for code that no range section
// covers (write barriers, call counting, entries from native code). What stands
// at the stack pointer must look like a return address.
//
// The VSD resolve stub pushes one register and pops it again.
func (x *execution) stub(e *located) (unwind.Trust, unwind.Stop) {
	switch {
	case e != nil && e.Stub == StubImageSection && !x.returnsToMethod(x.sp):
		return unwind.TrustNone, unwind.NoInfo // delay-load thunks push what they need
	case x.returnsToMethod(x.sp), x.followsCall(x.sp):
		return unwind.TrustLeaf, unwind.StopNone
	case e != nil && e.Stub == StubVSDResolve && x.returnsToMethod(x.sp+8):
		x.sp += 8
		return unwind.TrustLeaf, unwind.StopNone
	}
	return unwind.TrustNone, unwind.NoInfo
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

// followsCall reports whether the word at sp is an address behind a near call
// instruction: E8 rel32, or FF /2 in one of its lengths.
func (x *execution) followsCall(sp uint64) bool {
	ra, ok := x.mem.Word(sp)
	return ok && x.t.Call(ra)
}

// Call reports whether ip follows a near call instruction: only then can it be a
// return address.
func (t *Tables) Call(ra uint64) bool {
	if ra < 8 {
		return false
	}
	b, ok := t.v.bytes(ra-8, 8)
	if !ok {
		return false
	}
	if b[3] == 0xe8 {
		return true
	}
	for n := 2; n <= 7; n++ { // FF, ModRM, SIB and displacement
		if b[8-n] == 0xff && b[9-n]>>3&7 == 2 && callLength(b[9-n]) == n {
			return true
		}
	}
	return false
}

// callLength is the length of FF /2 with a ModRM byte.
func callLength(modrm byte) int {
	mod, rm := modrm>>6, modrm&7
	n := 2
	if mod != 3 && rm == 4 {
		n++ // SIB
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	return n
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

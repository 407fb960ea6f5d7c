package managed

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// stub leaves code of the runtime in which a thread was interrupted: it has no frame, and jumps to a method.
// The word at the stack pointer must look like a return address, because other code generators might have
// pushed something.
func (t *Tables) stub(kind Kind, at unwind.Address, regs *context.AMD64, mem *memory.Window) unwind.Stop {
	sp := regs.SP()
	ra, _ := mem.Word(sp)
	switch {
	case !at.Exact:
		return unwind.NoInfo // a stub never calls
	case t.isMethod(ra):
	case kind == Thunk:
		return unwind.NoInfo // its pushes are unknown
	case t.followsCall(ra):
	case kind == Resolve:
		if ra, _ = mem.Word(sp + 8); !t.isMethod(ra) {
			return unwind.NoInfo
		}
		sp += 8
	default:
		return unwind.NoInfo
	}
	regs.RIP, regs.GPR[context.RSP] = ra, sp+8
	regs.Known &= amd64.Preserved(t.src.Unix())
	return unwind.StopNone
}

// isMethod reports whether a return address is in a method.
func (t *Tables) isMethod(ra uint64) bool {
	return ra != 0 && t.src.Code(unwind.ReturnAddress(ra), &t.asked) == unwind.StopNone &&
		t.asked.Kind == Method
}

// followsCall reports whether the code before an address is a near call.
func (t *Tables) followsCall(ra uint64) bool {
	b := t.scratch[:]
	if ra <= nearcall.Longest || !t.src.ReadAt(b, ra-nearcall.Longest) {
		return false
	}
	if t.arch == context.ArchARM64 {
		return ra&3 == 0 && nearcall.ARM64(b)
	}
	return nearcall.AMD64(b)
}

// replaced reports whether the runtime can have replaced a return address. Then the caller is a method, or
// native code of the runtime (CallDescrWorkerInternal, IL_Throw). It cannot be a stub, because stubs never
// call.
func (t *Tables) replaced(ra uint64) bool {
	if !t.followsCall(ra) {
		return false
	}
	known := t.src.Code(unwind.ReturnAddress(ra), &t.asked) == unwind.StopNone
	return !known || t.asked.Kind == Method || t.asked.Kind == Uncharted
}

// maxThread is how many bytes of a Thread object are searched for hijack fields.
const maxThread = 1024

// Hijacked returns the true return address that the runtime has replaced in the stack slot at slot. ok is
// false if the Thread object at thread does not contain it. The object contains the true address, which must
// follow a call, and next to it the slot's address. Both are found by their values, because their offsets
// differ between releases.
func (t *Tables) Hijacked(thread, slot uint64) (ra uint64, ok bool) {
	if slot == 0 {
		return 0, false
	}
	object := t.thread[:]
	if !t.src.ReadAt(object, thread) {
		if object = object[:min(maxThread, pageSize-thread%pageSize)]; !t.src.ReadAt(object, thread) {
			return 0, false
		}
	}
	return t.TrueReturn(object, slot)
}

// TrueReturn is Hijacked for a copy of the Thread object.
func (t *Tables) TrueReturn(object []byte, slot uint64) (ra uint64, ok bool) {
	for i := 8; i+8 <= len(object); i += 8 {
		if binary.LittleEndian.Uint64(object[i:]) != slot {
			continue
		}
		if ra = binary.LittleEndian.Uint64(object[i-8:]); t.replaced(ra) {
			return ra, true
		}
	}
	return 0, false
}

package worlds

import (
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
)

// A *twin* of a bad context is a possible state of the thread whose registers, and all words of whose stack
// from the stack pointer on, are those of the bad context. No witness can distinguish the two. There are
// three kinds:
//   - Old frames are still in the holes of large frames.
//   - The function's unwind data use only the frame pointer. In such a function, the stack pointer can be
//     any lower address.
//   - The return address of an old frame is still the hijack stub. Only the Thread object shows that the
//     hijack has ended.
//
// The second kind is most frequent on ARM64, where the unwind data of every method with a frame record use
// only x29. Of 321 twins of "ip in other unmanaged code" in 1,200 worlds, 293 have the ip, the frame record,
// and the caller of a true frame. Only their stack pointer is wrong: the other function has another frame
// size. The CLR walks such a frame by x29, so the frames below it are true.
//   - 145 are in methods that allocate stack memory at run time. Their stack pointer can have any distance
//     from x29, so no observer can recognize the wrong one.
//   - 148 are in methods that do not. Their unwind data show it: no epilog sets the stack pointer from x29.
//     So the distance is fixed, and an observer could compare it. The product does not: no test on real ARM64
//     code has shown yet that a frame has a fixed size if no epilog has this instruction.
//   - The call before a return address is no evidence. A call of the simulator can call any function, like a
//     call through a register. The target of a real direct call is no proof either: the function on the stack
//     can have been reached by a tail call, a thunk, or a patch.

// maxTwin bounds the frames of a stack.
const maxTwin = 4096

// twin reports whether a seed is that of a twin. The frame below the stub of a redirected thread was
// interrupted. If the walker does not know that stub, the frame can also be a caller.
func (d *Damage) twin(st machine.State) bool {
	return d.possible(st, false) || d.redirected(st.R[d.w.Arch.SP()]) && d.possible(st, true)
}

// possible reports whether the frames from st on are possible: by the true unwind data of the images and the
// words of the copy, every frame is the caller of the one above it, down to the thread's first function. If
// exact is set, the first was interrupted.
func (d *Damage) possible(st machine.State, exact bool) bool {
	sp := d.w.Arch.SP()
	_, high := d.t.M.Bounds()
	for range maxTwin {
		look := st.PC
		if !exact {
			look--
		}
		im, f := d.w.Find(look)
		switch {
		case st.PC == d.w.CLR.HijackStub && !exact:
			return d.framed(&st, high) // the runtime has replaced the return address
		case f == nil, !exact && !returned(im, f, st.PC), st.R[sp] >= high:
			return false
		case d.w.CLR.Codes.Managed(st.PC) && !d.framed(&st, high):
			return false
		case f.Root:
			return true
		}
		at, pc := st.R[sp], st.PC
		switch {
		case exact:
		case d.w.CLR.Codes.Managed(pc):
			sim.ByFramePointer(d.w.Arch, im, f, &st, 0)
		default:
			sim.ByFramePointer(d.w.Arch, im, f, &st, 1)
		}
		var ok bool
		if exact, ok = machine.StepRow(d.w.Arch, im, f, &st, d.word); !ok ||
			st.R[sp]-at < sim.LeastFrame(d.w.Arch, im, f, pc) {
			return false
		}
	}
	return false
}

// framed reports whether the registers of a managed frame point to its frame record, as all do on ARM64.
func (d *Damage) framed(st *machine.State, high uint64) bool {
	if d.w.Arch != image.ARM64 {
		return true
	}
	record := st.R[d.w.Arch.FP()]
	ra, ok := d.word(record + 8)
	if record < st.R[d.w.Arch.SP()] || record >= high || !ok {
		return false
	}
	ra &= 1<<48 - 1 // it may be signed
	im, f := d.w.Find(ra - 1)
	return ra == d.w.CLR.HijackStub || f != nil && returned(im, f, ra)
}

// redirected reports whether the stub of a redirected thread, which is not called, can be above a seed.
func (d *Damage) redirected(seed uint64) bool {
	im, f := d.w.Kit.Lookup(sim.RedirectEntry)
	in := func(ip uint64) bool { return ip-im.Base-uint64(f.RVA) <= uint64(f.Size) }
	is := in(d.bad.PC) || in(d.bad.R[30]) // the link register
	for at := d.bad.R[d.w.Arch.SP()]; at < seed && !is; at += 8 {
		v, _ := d.word(at)
		is = in(v)
	}
	return is
}

// returned reports whether ip follows a call of f.
func returned(im *image.Image, f *image.Func, ip uint64) bool {
	off := uint32(ip-im.Base) - f.RVA
	at := f.At(off)
	if off == f.Size {
		at = len(f.Ops)
	}
	return at >= 1 &&
		slices.ContainsFunc(f.Ops[at-1].Effects, func(e image.Effect) bool { return e.Kind == image.Call })
}

// word reads the damaged copy of the stack.
func (d *Damage) word(addr uint64) (uint64, bool) {
	off := addr - d.at
	if n := uint64(len(d.stack)); n < 8 || off > n-8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(d.stack[off:]), true
}

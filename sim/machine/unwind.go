package machine

import "github.com/seedwalk/seedwalk/sim/image"

// StepRow replaces st, the registers of a frame of f, by its caller's registers. exact is true
// if the caller was interrupted. ok is false, and st is then undefined, in three cases. The PC
// is at no op of f (and not after a last call), a word cannot be read, or f is a thread's first
// function. Registers that calls do not preserve keep their values in st. StepRow allocates
// nothing if image.Build placed f.
func StepRow(a image.Arch, im *image.Image, f *image.Func, st *State,
	read func(uint64) (uint64, bool)) (exact, ok bool) {
	at := f.At(uint32(st.PC - im.Base - uint64(f.RVA)))
	if st.PC == im.Base+uint64(f.End()) {
		at = len(f.Ops) - 1
	}
	if at < 0 || f.Root {
		return false, false
	}
	row := &f.Rows(a)[at]
	base := st.R[row.Base]
	cfa := base + uint64(row.Off)
	origin := cfa // of the slots
	if row.Interrupted {
		origin = base
		if cfa, ok = read(cfa); !ok {
			return false, false
		}
	}
	ra, ok := st.R[30], true
	if !row.RAReg {
		ra, ok = read(origin + uint64(row.RA))
	}
	if !ok || !restore(a, row, origin, st, read) {
		return false, false
	}
	if row.Signed {
		ra = strip(ra)
	}
	st.PC, st.R[a.SP()] = ra, cfa
	if a == image.ARM64 && !row.Interrupted {
		st.R[30] = ra
	}
	return row.Interrupted, true
}

// restore reads the saved registers.
func restore(a image.Arch, row *image.Row, origin uint64, st *State, read func(uint64) (uint64, bool)) bool {
	for _, s := range row.Saved {
		v, ok := read(origin + uint64(s.Off))
		if !ok {
			return false
		}
		st.R[s.Reg&31] = v
	}
	for _, s := range row.V {
		lo, ok := read(origin + uint64(s.Off))
		hi := uint64(0)
		if ok && a == image.AMD64 {
			hi, ok = read(origin + uint64(s.Off) + 8)
		}
		if !ok {
			return false
		}
		st.V[s.Reg&31] = [2]uint64{lo, hi}
	}
	return true
}

// Unwind steps from a frame to its caller by rows, and returns the caller's state. find returns
// the function that contains an address. exact is true if st's PC is an interrupted instruction,
// and false if it is a return address. Unwind returns false if StepRow does, or if no function
// contains the PC. A caller with PC 0 is the end of the stack.
func Unwind(a image.Arch, find func(addr uint64) (*image.Image, *image.Func), st State, exact bool,
	read func(uint64) (uint64, bool)) (State, bool) {
	look := st.PC
	if !exact {
		look--
	}
	im, f := find(look)
	if f == nil {
		return st, false
	}
	_, ok := StepRow(a, im, f, &st, read)
	return st, ok
}

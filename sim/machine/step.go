package machine

import "github.com/seedwalk/seedwalk/sim/image"

// pacBits are the bits of a pointer authentication code: all bits above a 48-bit
// address, except bit 55. That bit selects the half of the address space.
const pacBits = 0xff7f << 48

// strip removes a pointer authentication code.
func strip(v uint64) uint64 {
	if v>>55&1 != 0 {
		return v | pacBits
	}
	return v &^ pacBits
}

// Step executes the op at PC. At a call it does nothing and returns AtCall. At no op it
// returns Faulted.
func (t *Thread) Step() Event {
	op, part := t.Op()
	switch {
	case op == nil:
		return Faulted
	case len(op.Effects) == 0:
		if part == image.Body {
			t.clobber()
		}
		t.next(op)
		return Ran
	}
	u := undo{}
	for i := range op.Effects {
		e := &op.Effects[i]
		switch e.Kind {
		case image.Call:
			return AtCall
		case image.Return, image.Jump:
			return t.leave()
		}
		if !t.apply(e, &u) {
			u.back(t)
			return Faulted
		}
	}
	t.next(op)
	return Ran
}

// next moves PC to the op after op.
func (t *Thread) next(op *image.Op) {
	t.at++
	t.state.PC += uint64(len(op.Code))
}

// undo holds the old values of the registers that an op changes. If the op faults, they are
// restored.
type undo struct {
	n   int
	reg [8]image.Reg
	old [8]uint64
}

func (u *undo) set(t *Thread, r image.Reg, v uint64) {
	if u.n < len(u.reg) {
		u.reg[u.n], u.old[u.n] = r, t.state.R[r&31]
		u.n++
	}
	t.state.R[r&31] = v
}

func (u *undo) back(t *Thread) {
	for u.n > 0 {
		u.n--
		t.state.R[u.reg[u.n]&31] = u.old[u.n]
	}
}

// apply executes one effect. It returns false if the effect accesses memory outside the stacks.
func (t *Thread) apply(e *image.Effect, u *undo) bool {
	s := &t.state
	r, addr := e.Reg&31, s.R[e.Base&31]+uint64(e.Imm)
	switch e.Kind {
	case image.Add:
		u.set(t, r, addr)
	case image.AddReg:
		u.set(t, r, s.R[r]+s.R[e.Base&31])
	case image.Set:
		u.set(t, r, uint64(e.Imm))
	case image.Reserve:
		return t.reserve(s.R[r])
	case image.Sign:
		s.R[30] ^= t.draw() & pacBits
	case image.Auth:
		s.R[30] = strip(s.R[30])
	case image.Store:
		return t.put(addr, s.R[r])
	case image.Load:
		v, ok := t.Word(addr)
		if ok {
			u.set(t, r, v)
		}
		return ok
	case image.StoreV:
		return t.put(addr, s.V[r][0]) && (t.arch == image.ARM64 || t.put(addr+8, s.V[r][1]))
	case image.LoadV:
		return t.loadV(r, addr)
	}
	return true
}

func (t *Thread) loadV(r image.Reg, addr uint64) bool {
	lo, ok := t.Word(addr)
	hi := uint64(0)
	if t.arch == image.AMD64 {
		var ok2 bool
		hi, ok2 = t.Word(addr + 8)
		ok = ok && ok2
	}
	if ok {
		t.state.V[r] = [2]uint64{lo, hi}
	}
	return ok
}

// Call executes the call op at PC: f of im runs next. It does nothing and returns false if the
// op is no call, if calls cannot enter f, or if the stack has no room.
func (t *Thread) Call(im *image.Image, f *image.Func) bool {
	op, ok := t.callOp()
	if !ok || f.Entry != image.Called {
		return false
	}
	ra := t.state.PC + uint64(len(op.Code))
	c := activation{image: t.image, fn: t.fn, state: t.state}
	c.state.PC = ra
	if t.arch == image.ARM64 {
		c.state.R[30] = ra
	}
	if !t.enter(im, f, ra) {
		return false
	}
	t.callers = append(t.callers, c)
	t.clobberVectors()
	return true
}

// Skip skips the call op at PC, as if the called function had returned. Volatile registers then
// have other values. At any other op it does nothing.
func (t *Thread) Skip() {
	op, ok := t.callOp()
	if !ok {
		return
	}
	t.scramble(t.volatile())
	t.clobberVectors()
	t.next(op)
	if t.arch == image.ARM64 {
		t.state.R[30] = t.state.PC
	}
}

func (t *Thread) callOp() (*image.Op, bool) {
	op, _ := t.Op()
	if op == nil || len(op.Effects) == 0 || op.Effects[0].Kind != image.Call {
		return nil, false
	}
	return op, true
}

// Enter makes f run as if the code at PC had called it with return address ra. Use it after a
// diverted return: f is then the stub at PC, and ra the address in the true caller. It returns
// false if calls cannot enter f, or the stack has no room.
func (t *Thread) Enter(im *image.Image, f *image.Func, ra uint64) bool {
	return f.Entry == image.Called && t.enter(im, f, ra)
}

// leave returns to the caller, or resumes the function that a trap or signal interrupted.
func (t *Thread) leave() Event {
	if t.fn.Entry != image.Called {
		return t.resume()
	}
	ra := t.state.R[30]
	if t.arch == image.AMD64 {
		sp := &t.state.R[t.arch.SP()]
		v, ok := t.Word(*sp)
		if !ok {
			return Faulted
		}
		ra = v
		*sp += 8
	}
	t.state.PC = ra
	return t.land()
}

// land continues at PC in the caller.
func (t *Thread) land() Event {
	t.image, t.fn, t.at = nil, nil, -1
	n := len(t.callers) - 1
	if n < 0 {
		if t.state.PC == 0 {
			return Ended
		}
		return Diverted
	}
	c := &t.callers[n]
	if c.state.PC != t.state.PC {
		return Diverted
	}
	if c.redirected() {
		t.state = c.state // the stub ends by writing the whole context
	}
	t.image, t.fn = c.image, c.fn
	t.at = t.fn.At(uint32(t.state.PC - t.image.Base - uint64(t.fn.RVA)))
	t.callers = t.callers[:n]
	return Returned
}

// volatile returns the mask of the general registers that a call may change, by the ABI of the
// running function.
func (t *Thread) volatile() uint32 {
	switch {
	case t.arch == image.ARM64:
		return 1<<18 - 1 // X18 is the platform's
	case t.image.Format == image.PE:
		return 0x0f07 // RAX RCX RDX R8-R11
	}
	return 0x0fc7 // RSI, RDI too
}

// clobber gives other values to all registers that the function may change at this op. These are
// the volatile registers and the saved ones, except those that the function still needs.
func (t *Thread) clobber() {
	if t.fn.Entry == image.SignalFrame {
		return
	}
	mask := t.volatile()
	row := &t.fn.Rows(t.arch)[t.at]
	for _, s := range row.Saved {
		mask |= 1 << s.Reg
	}
	if t.arch == image.ARM64 && !row.RAReg {
		mask |= 1 << 30
	}
	t.scramble(mask &^ (row.Held | 1<<row.Base | 1<<t.arch.SP()))
	for _, s := range row.V {
		t.state.V[s.Reg&31] = [2]uint64{t.draw(), t.vectorHigh()}
	}
}

func (t *Thread) scramble(mask uint32) {
	for r := 0; mask != 0; r++ {
		if mask&1 != 0 {
			t.state.R[r] = t.draw()
		}
		mask >>= 1
	}
}

// clobberVectors changes the volatile vector registers that a walker reads: XMM6 to
// XMM15 on System V.
func (t *Thread) clobberVectors() {
	if t.arch == image.ARM64 || t.image.Format == image.PE {
		return
	}
	for r := 6; r < 16; r++ {
		t.state.V[r] = [2]uint64{t.draw(), t.draw()}
	}
}

package image

// Rows by symbolic execution. What a register or a word of the stack holds is
// known as far as a walk needs it: a register's value at the function's entry
// plus a distance, or not at all.

// noReg is the origin of a value that is not known.
const noReg = 0xff

// value is the entry value of register from plus off.
type value struct {
	from   Reg
	signed bool
	off    int64
}

// stored is a word of the stack: at the entry SP plus at.
type stored struct {
	at int64
	v  value
}

// nonvolatileRegs has a bit per general register that functions preserve, in
// any ABI of the architecture. X30 is the return address, not one of them.
func nonvolatileRegs(a Arch) uint32 {
	if a == ARM64 {
		return 0x7ff << 19 // X19-X29
	}
	return 1<<3 | 1<<5 | 1<<6 | 1<<7 | 0xf<<12 // RBX RBP RSI RDI R12-R15
}

// linkReg is ARM64's X30.
const linkReg = 30

// tracer is a function's execution so far.
type tracer struct {
	arch   Arch
	fn     *Func
	regs   [32]value
	stack  []stored
	saved  []Slot // Off from the entry SP
	v      []Slot
	ra     int64 // the stored X30, if raMem
	raMem  bool
	signed bool // of the stored X30
	ret    int64
}

// traceRows executes f.
func traceRows(f *Func, a Arch) []Row {
	t := tracer{arch: a, fn: f}
	for r := range t.regs {
		t.regs[r] = value{from: Reg(r)}
	}
	if a == AMD64 {
		t.ret = 8
	}
	if f.Entry == SignalFrame {
		t.signalFrame()
	}
	rows := make([]Row, len(f.Ops))
	for i := range f.Ops {
		rows[i] = t.row()
		for _, e := range f.Ops[i].Effects {
			t.apply(e)
		}
	}
	return rows
}

// signalFrame makes all that the kernel saved slots.
func (t *tracer) signalFrame() {
	l := SignalLayout(t.arch)
	for r, at := range l.Regs {
		if at != 0 && Reg(r) != t.arch.SP() {
			t.saved = append(t.saved, Slot{Reg(r), at})
		}
	}
	for r, at := range l.V {
		if at != 0 {
			t.v = append(t.v, Slot{Reg(r), at})
		}
	}
}

// row describes the state before an op.
func (t *tracer) row() Row {
	sp := t.arch.SP()
	base := t.base()
	at := t.regs[base].off // from the entry SP
	r := Row{Base: base, Held: t.held()}
	switch t.fn.Entry {
	case Called:
		r.Off = t.ret - at
		r.Saved, r.V = moved(t.saved, -t.ret), moved(t.v, -t.ret)
		t.returnAddress(&r)
		return r
	case SignalFrame:
		l := SignalLayout(t.arch)
		r.Off, r.RA = l.Regs[sp]-at, l.PC-at
	case MachineFrame:
		r.Off, r.RA = 24-at, -at
	case MachineFrameCode:
		r.Off, r.RA = 32-at, 8-at
	}
	r.Interrupted = true
	r.Saved, r.V = moved(t.saved, -at), moved(t.v, -at)
	return r
}

// returnAddress fills where the return address of a called function is.
func (t *tracer) returnAddress(r *Row) {
	switch {
	case t.arch == AMD64:
		r.RA = -8
	case t.raMem:
		r.RA, r.Signed = t.ra-t.ret, t.signed
	default:
		r.RAReg, r.Signed = true, t.regs[linkReg].signed
	}
}

// base picks the register the CFA is found by: SP while its distance is known.
func (t *tracer) base() Reg {
	sp := t.arch.SP()
	if t.regs[sp].from == sp {
		return sp
	}
	if t.regs[t.arch.FP()].from == sp {
		return t.arch.FP()
	}
	for r := range t.regs {
		if t.regs[r].from == sp {
			return Reg(r)
		}
	}
	return sp // no register knows: the function cannot be unwound here
}

// held are the registers, but for SP, that hold an address of the frame.
func (t *tracer) held() (mask uint32) {
	for r := range t.regs {
		if Reg(r) != t.arch.SP() && t.regs[r].from == t.arch.SP() {
			mask |= 1 << r
		}
	}
	return mask
}

// moved copies slots, their offsets changed by d.
func moved(s []Slot, d int64) []Slot {
	if len(s) == 0 {
		return nil
	}
	to := make([]Slot, len(s))
	for i := range s {
		to[i] = Slot{s[i].Reg, s[i].Off + d}
	}
	return to
}

func (t *tracer) apply(e Effect) {
	sp := t.arch.SP()
	switch e.Kind {
	case Add:
		t.regs[e.Reg] = t.regs[e.Base]
		t.regs[e.Reg].off += e.Imm
	case AddReg, Set:
		t.regs[e.Reg] = value{from: noReg}
	case Store:
		if b := t.regs[e.Base]; b.from == sp {
			t.store(e.Reg, b.off+e.Imm)
		}
	case Load:
		t.load(e.Reg, t.regs[e.Base], e.Imm)
	case StoreV:
		if b := t.regs[e.Base]; b.from == sp && find(t.v, e.Reg) < 0 {
			t.v = append(t.v, Slot{e.Reg, b.off + e.Imm})
		}
	case LoadV:
		t.v = remove(t.v, find(t.v, e.Reg))
	case Sign, Auth:
		t.regs[linkReg].signed = e.Kind == Sign
	case Call:
		if t.arch == ARM64 {
			t.regs[linkReg] = value{from: noReg}
		}
	}
}

// store notes a word, and the save of a register if that is what it is.
func (t *tracer) store(r Reg, at int64) {
	for i := range t.saved {
		if t.saved[i].Off == at {
			t.saved = remove(t.saved, i)
			break
		}
	}
	v := t.regs[r]
	t.put(at, v)
	switch {
	case v.from != r || v.off != 0:
	case t.arch == ARM64 && r == linkReg:
		t.ra, t.raMem, t.signed = at, true, v.signed
	case nonvolatileRegs(t.arch)>>r&1 != 0 && find(t.saved, r) < 0:
		t.saved = append(t.saved, Slot{r, at})
	}
}

func (t *tracer) put(at int64, v value) {
	for i := range t.stack {
		if t.stack[i].at == at {
			t.stack[i].v = v
			return
		}
	}
	t.stack = append(t.stack, stored{at, v})
}

// load is the reverse; the register's own value ends its being saved.
func (t *tracer) load(r Reg, base value, imm int64) {
	v := value{from: noReg}
	if base.from == t.arch.SP() {
		for i := range t.stack {
			if t.stack[i].at == base.off+imm {
				v = t.stack[i].v
			}
		}
	}
	t.regs[r] = v
	if v.from != r || v.off != 0 {
		return
	}
	t.saved = remove(t.saved, find(t.saved, r))
	if t.arch == ARM64 && r == linkReg {
		t.raMem = false
	}
}

// find returns the index of a register's slot, or -1.
func find(s []Slot, r Reg) int {
	for i := range s {
		if s[i].Reg == r {
			return i
		}
	}
	return -1
}

func remove(s []Slot, i int) []Slot {
	if i < 0 {
		return s
	}
	return append(s[:i], s[i+1:]...)
}

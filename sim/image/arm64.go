package image

// ShapeARM64 describes an ARM64 function. Func encodes it.
type ShapeARM64 struct {
	RegI         int    // x19 and up are saved: 0-10
	RegF         int    // d8 and up: 0-8
	FrameSize    uint32 // bytes, saves included; grown as saves need, rounded to 16
	Link         bool   // x30 is saved without a frame record; calls and PAC imply it, unless FramePointer
	FramePointer bool   // x29 and x30 are saved as a frame record, x29 points at it
	Homing       bool   // x0-x7 are stored behind the saved registers
	PAC          bool   // the return address is signed: key B in PE, key A in ELF
	Layout       LayoutARM64
	Packed       bool // PE: refused unless a packed word can say it
	Xdata        bool // PE: a nop in the prolog keeps it from being packed
	EarlyFP      bool // LayoutRecordFirst: x29 is set before the other saves
	Spread       bool // other instructions between those of the prolog; with an .xdata record only
	Calls        int  // call sites in the body
	Body         int  // other instructions in the body
	Dynamic      bool // alloca after the prolog; needs FramePointer
	Fragment     bool // PE: the later part has entries of its own; see Func.Chained
	Late         bool // with Fragment: the vector registers are saved at its begin
	TailJump     bool // ends with a jump instead of a return
	Leaf         bool // nothing saved, allocated or called
	NoInfo       bool
	Root         bool
}

// LayoutARM64 is the order of a prolog.
type LayoutARM64 uint8

const (
	// LayoutCanonical is the prolog that packed words stand for: registers, then
	// homes, then the local area with the frame record at its bottom.
	LayoutCanonical LayoutARM64 = iota
	// LayoutRecordFirst saves x29 and x30 first, as gcc and clang do for ELF.
	LayoutRecordFirst
	// LayoutRecordLast saves them last, as clang does for PE: x29 = SP + n.
	LayoutRecordLast
	// LayoutAllocFirst allocates all at once, then saves.
	LayoutAllocFirst
	layoutsARM64
)

const (
	maxRegI = 10
	maxRegF = 8
	// maxPacked is the largest frame in bytes that a packed word can describe.
	maxPacked = 511 * 16
)

// planARM64 is a prolog while it is built.
type planARM64 struct {
	s     ShapeARM64
	f     Format
	asm   asm
	steps []stepARM64
	late  []stepARM64 // those of the fragment
	fp    int         // index of the step that sets x29, or -1
	size  int64       // of the frame
}

// Func encodes the shape. It refuses what the calling convention or the unwind
// data cannot express.
func (s ShapeARM64) Func(f Format, name string) (Func, error) {
	fn := Func{Name: name, NoInfo: s.NoInfo, Root: s.Root}
	if (s.Calls > 0 || s.PAC) && !s.FramePointer {
		s.Link = true
	}
	if why := s.refuse(f); why != "" {
		return Func{}, errFunc(&fn, "%s", why)
	}
	p := planARM64{s: s, f: f, fp: -1}
	p.plan()
	p.prolog()
	p.body(&fn)
	p.epilog()
	fn.Ops, fn.Size = p.asm.ops, p.asm.off
	if s.Packed {
		if _, ok := packARM64(&fn); !ok {
			return Func{}, errFunc(&fn, "no packed word says it")
		}
	}
	return fn, nil
}

// refuse returns the part of a shape that is impossible, "" if the whole shape is possible.
func (s *ShapeARM64) refuse(f Format) string {
	switch {
	case s.RegI < 0 || s.RegI > maxRegI || s.RegF < 0 || s.RegF > maxRegF:
		return "saves registers that do not exist"
	case s.FrameSize > maxAlloc || s.Calls < 0 || s.Body < 0 || s.Layout >= layoutsARM64:
		return "a size out of range"
	case s.Link && s.FramePointer:
		return "saves x30 twice"
	case s.Dynamic && !s.FramePointer:
		return "alloca without a frame pointer"
	case s.Leaf && (s.RegI+s.RegF+s.Calls > 0 || s.FrameSize != 0 || s.Link || s.FramePointer || s.Homing ||
		s.Fragment || s.Xdata || s.Spread):
		return "a leaf with a frame, a call, or saved registers"
	case f == ELF && (s.Packed || s.Xdata || s.Fragment):
		return "a shape of Windows in an ELF image"
	case s.EarlyFP && (s.Layout != LayoutRecordFirst || !s.FramePointer):
		return "an early frame pointer without a first record"
	case s.EarlyFP && s.Dynamic && f == PE:
		return "saves at an unknown stack pointer"
	case s.Late && (!s.Fragment || s.RegF == 0 || s.Dynamic || s.Layout == LayoutCanonical):
		return "saves in a fragment that cannot be there"
	case s.NoInfo && f == PE && !s.Leaf:
		return "a frame without unwind data"
	case s.NoInfo && s.Fragment:
		return "a fragment of nothing"
	}
	return ""
}

// plan fills steps.
func (p *planARM64) plan() {
	s := &p.s
	if s.PAC {
		p.add(stepARM64{kind: stepSign, keyB: p.f == PE})
	}
	if s.Xdata {
		p.add(stepARM64{kind: stepNop})
	}
	switch s.Layout {
	case LayoutCanonical:
		p.canonical()
	case LayoutRecordFirst:
		p.recordFirst()
	default:
		p.recordLast(s.Layout == LayoutAllocFirst)
	}
	if s.Late {
		p.split()
	}
}

func (p *planARM64) add(s ...stepARM64) { p.steps = append(p.steps, s...) }

func (p *planARM64) setFP(at int64) {
	p.fp = len(p.steps)
	p.add(stepARM64{kind: stepFP, at: at})
}

// sizes returns the bytes of the integer registers (with x30 if it is saved
// alone), of the vector registers and of the homes.
func (p *planARM64) sizes() (ints, vectors, homes int64) {
	n := p.s.RegI
	if p.s.Link {
		n++
	}
	if p.s.Homing {
		homes = 64
	}
	return 8 * int64(n), 8 * int64(p.s.RegF), homes
}

func align16(n int64) int64 { return (n + 15) &^ 15 }

// intSteps saves x19 and up, and x30 if link, from at on. The last odd register
// pairs with x30.
func intSteps(n int, link bool, at int64) (s []stepARM64) {
	for i := 0; i < n; i += 2 {
		r := x19 + Reg(i)
		switch {
		case i+1 < n:
			s = append(s, savePair(r, r+1, at, false))
		case link:
			return append(s, savePair(r, x30, at, false))
		default:
			s = append(s, saveOne(r, at, false))
		}
		at += 16
	}
	if link {
		s = append(s, saveOne(x30, at, false))
	}
	return s
}

// vectorSteps saves d8 and up from at on.
func vectorSteps(n int, at int64) (s []stepARM64) {
	for i := 0; i < n; i += 2 {
		v := savePair(Reg(8+i), Reg(9+i), at, false)
		if i+1 == n {
			v = saveOne(Reg(8+i), at, false)
		}
		v.vector = true
		s = append(s, v)
		at += 16
	}
	return s
}

// homeSteps stores x0-x7 from at on.
func homeSteps(yes bool, at int64) (s []stepARM64) {
	if !yes {
		return nil
	}
	for r := Reg(0); r < 8; r += 2 {
		h := savePair(r, r+1, at+8*int64(r), false)
		h.kind = stepHome
		s = append(s, h)
	}
	return s
}

// area is registers and homes from at on, in the order that packed words know.
func (p *planARM64) area(at int64) []stepARM64 {
	ints, vectors, _ := p.sizes()
	s := intSteps(p.s.RegI, p.s.Link, at)
	s = append(s, vectorSteps(p.s.RegF, at+ints)...)
	return append(s, homeSteps(p.s.Homing, at+ints+vectors)...)
}

// lower makes the first step allocate n bytes, and store at their lowest address. No unwind code
// describes that for a pair with x30. So a separate allocation comes before such a pair.
func (p *planARM64) lower(s []stepARM64, n int64) []stepARM64 {
	if len(s) == 0 || s[0].pair && s[0].r2 == x30 && s[0].r != x29 {
		return append(allocSteps(n), s...)
	}
	s[0].pre, s[0].at = true, n
	return s
}

func (p *planARM64) prolog() {
	p.asm.part = Prolog
	for i := range p.steps {
		p.steps[i].do(&p.asm)
		if p.s.Spread && i%2 == 1 {
			p.asm.filler(i)
		}
	}
}

// body alternates fillers and calls; its middle begins the fragment.
func (p *planARM64) body(fn *Func) {
	p.asm.part = Body
	if p.s.Dynamic {
		p.asm.allocaARM64(16 * int64(1+(p.s.Body*5+p.s.Calls*3)%24))
	}
	total, calls := p.s.Body+p.s.Calls, 0
	for i := range total {
		if p.s.Fragment && i == (total+1)/2 {
			p.fragment(fn)
		}
		if (i+1)*p.s.Calls/total > calls {
			calls++
			p.asm.callARM64(calls%2 == 0)
		} else {
			p.asm.filler(i + p.s.Body)
		}
	}
	if p.s.Fragment && fn.Chained == 0 {
		p.fragment(fn)
	}
}

// fragment begins the part with entries of its own.
func (p *planARM64) fragment(fn *Func) {
	if p.asm.off == 0 || p.asm.ops[len(p.asm.ops)-1].Part == Prolog {
		p.asm.filler(0) // the first part is more than a prolog
	}
	fn.Chained = p.asm.off
	p.asm.part = Prolog
	for i := range p.late {
		p.late[i].do(&p.asm)
	}
	p.asm.part = Body
	if len(p.late) > 0 {
		p.asm.filler(1)
	}
}

// epilog undoes the steps in reverse order. If SP is not known, an instruction sets it from x29. The
// canonical epilog has no such instruction, so it is then the last one of the body.
func (p *planARM64) epilog() {
	if p.s.Layout != LayoutCanonical {
		p.asm.part = Epilog
	}
	if p.s.Dynamic {
		p.asm.addImm(xsp, x29, -p.steps[p.fp].at)
	}
	p.asm.part = Epilog
	for i := len(p.late) - 1; i >= 0; i-- {
		p.late[i].undo(&p.asm)
	}
	for i := len(p.steps) - 1; i >= 0; i-- {
		if p.s.Dynamic && i > p.fp && p.steps[i].kind == stepAlloc {
			continue
		}
		p.steps[i].undo(&p.asm)
	}
	if p.s.TailJump {
		p.asm.word(a64BRX16, Effect{Kind: Jump})
	} else {
		p.asm.word(a64Ret, Effect{Kind: Return})
	}
}

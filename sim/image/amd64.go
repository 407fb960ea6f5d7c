package image

// ShapeAMD64 describes an x86-64 function. Func encodes it.
type ShapeAMD64 struct {
	Saves        []Reg  // nonvolatile general registers, in the order they are saved
	SavesXMM     []Reg  // XMM6-XMM15, PE only
	Alloc        uint32 // bytes of locals; grown as saves, calls and alignment need
	FramePointer bool
	FrameReg     Reg    // PE only; 0 = RBP
	FPOffset     uint32 // PE: the frame pointer is that many bytes above RSP: 0-240, a multiple of 16
	EarlyFP      bool   // the frame pointer is set before the allocation (always so in ELF)
	Dynamic      bool   // alloca after the prolog; needs a frame pointer
	SaveByMov    bool   // mov [rsp+n],reg instead of push
	Home         bool   // PE: stores into the caller's home area; with SaveByMov the first four saves go there
	Spread       bool   // other instructions between those of the prolog
	Calls        int    // call sites in the body
	Body         int    // nops of 1-9 bytes in the body
	Chained      bool   // PE: the later part has an entry of its own, which saves what is left to be saved by mov
	NoInfo       bool
	Root         bool
	Leaf         bool     // nothing saved, allocated or called
	TailJump     bool     // ends with a jump instead of a return
	RepRet       bool     // ends with rep ret
	JumpForm     JumpForm // how it jumps
	MachineFrame bool     // PE: entered by a trap
	ErrorCode    bool     // with MachineFrame: the processor pushed one
}

// JumpForm is how a tail jump is encoded.
type JumpForm uint8

const (
	JumpRel JumpForm = iota // jmp rel32
	JumpMem                 // jmp [rip+disp]
	JumpReg                 // rex.w jmp rax
)

// homeSize is the room in bytes that a Windows x64 caller leaves for its callee.
const homeSize = 32

// plan has the places of a shape's saves. Distances are from RSP after the prolog (before any
// alloca).
type plan struct {
	s      ShapeAMD64
	f      Format
	asm    asm
	fp     Reg
	pushes []Reg
	movs   []placed // into the frame or the home area
	xmms   []placed
	size   int64 // of the allocation
	entry  int64 // bytes at the entry that RSP is off 16-byte alignment, and below the CFA
	split  [2]int
}

// placed is a register saved by mov.
type placed struct {
	reg  Reg
	at   int64 // from RSP behind the prolog
	home bool  // saved before anything else
}

// Func encodes the shape. It refuses what the format's calling convention or
// its unwind data cannot express.
func (s ShapeAMD64) Func(f Format, name string) (Func, error) {
	p := plan{s: s, f: f}
	fn := Func{Name: name, NoInfo: s.NoInfo, Root: s.Root}
	if s.MachineFrame {
		fn.Entry = MachineFrame
		if s.ErrorCode {
			fn.Entry = MachineFrameCode
		}
	}
	if why := s.refuse(f); why != "" {
		return Func{}, errFunc(&fn, "%s", why)
	}
	p.place()
	p.prolog()
	if f == PE && p.asm.off > maxProlog {
		return Func{}, errFunc(&fn, "the prolog has %d bytes", p.asm.off)
	}
	p.body(&fn)
	p.epilog()
	fn.Ops, fn.Size = p.asm.ops, p.asm.off
	return fn, nil
}

// maxProlog is the largest prolog in bytes that UNWIND_INFO's SizeOfProlog can describe.
const maxProlog = 255

// maxAlloc is the largest allocation, bytes; stacks are small.
const maxAlloc = 1 << 24

// refuse returns the part of a shape that is impossible, "" if the whole shape is possible.
func (s *ShapeAMD64) refuse(f Format) string {
	kept := nonvolatileRegs(AMD64)
	if f == ELF {
		kept &^= 1<<rsi | 1<<rdi
	}
	seen := uint32(0)
	for _, r := range s.Saves {
		if r > r15 || kept>>r&1 == 0 || seen>>r&1 != 0 {
			return "saves a register that is volatile, or twice"
		}
		seen |= 1 << r
	}
	seen = 0
	for _, r := range s.SavesXMM {
		if r < 6 || r > 15 || seen>>r&1 != 0 {
			return "saves a vector register that is volatile, or twice"
		}
		seen |= 1 << r
	}
	fp := s.frameReg()
	switch {
	case f == ELF && (len(s.SavesXMM) > 0 || s.Home || s.Chained || s.MachineFrame ||
		s.FPOffset != 0 || fp != rbp):
		return "a shape of Windows in an ELF image"
	case s.ErrorCode && !s.MachineFrame:
		return "an error code without a machine frame"
	case s.Alloc > maxAlloc || s.Calls < 0 || s.Body < 0:
		return "a size out of range"
	case s.Dynamic && !s.FramePointer:
		return "alloca without a frame pointer"
	case s.Leaf && (len(s.Saves)+len(s.SavesXMM)+s.Calls > 0 || s.Alloc != 0 || s.FramePointer ||
		s.Home && s.SaveByMov || s.Chained || s.MachineFrame):
		return "a leaf with a frame, a call, or saved registers"
	case s.MachineFrame && (s.Home || s.TailJump || s.NoInfo || s.Root):
		return "a trap handler is not called"
	case s.FPOffset > 240 || s.FPOffset%16 != 0:
		return "a frame pointer offset that has no encoding"
	case s.FramePointer && kept>>fp&1 == 0:
		return "a volatile frame pointer"
	case f == PE && s.EarlyFP && (s.FPOffset != 0 || s.savesBelow()):
		return "saves below the frame pointer"
	case s.Chained && s.NoInfo:
		return "chained to nothing"
	}
	return ""
}

// savesBelow reports whether a register is saved below the address to which an early frame
// pointer points. UNWIND_INFO cannot describe such stores. It can describe such pushes only
// while RSP keeps its distance from the frame pointer.
func (s *ShapeAMD64) savesBelow() bool {
	others := len(s.Saves)
	for _, r := range s.Saves {
		if r == s.frameReg() {
			others--
		}
	}
	return len(s.SavesXMM) > 0 || others > 0 && (s.SaveByMov || s.Dynamic)
}

func (s *ShapeAMD64) frameReg() Reg {
	if s.FrameReg == 0 {
		return rbp
	}
	return s.FrameReg
}

// place chooses the places of the saves, and the size of the allocation.
func (p *plan) place() {
	s := &p.s
	p.entry, p.fp = 8, s.frameReg()
	if s.ErrorCode {
		p.entry = 0
	}
	if s.FramePointer {
		p.pushes = append(p.pushes, p.fp)
	}
	var byMov []Reg
	for _, r := range s.Saves {
		switch {
		case s.FramePointer && r == p.fp:
		case s.SaveByMov:
			byMov = append(byMov, r)
		default:
			p.pushes = append(p.pushes, r)
		}
	}
	at := int64(0)
	if p.f == PE && s.Calls > 0 {
		at = homeSize
	}
	for _, r := range s.SavesXMM {
		p.xmms = append(p.xmms, placed{reg: r, at: at})
		at += 16
	}
	inHome := 0
	if s.Home {
		inHome = min(4, len(byMov))
	}
	for _, r := range byMov[inHome:] {
		p.movs = append(p.movs, placed{reg: r, at: at})
		at += 8
	}
	p.size = at + int64(align(s.Alloc, 8))
	if p.size > 0 || s.Calls > 0 || s.Dynamic {
		p.size += (p.entry + 8*int64(len(p.pushes)) + p.size) & 8
	}
	top := p.size + 8*int64(len(p.pushes)) + 8 // the home area
	for i, r := range byMov[:inHome] {
		p.movs = append(p.movs, placed{reg: r, at: top + 8*int64(i), home: true})
	}
	p.split = [2]int{len(p.movs), len(p.xmms)}
	if s.Chained {
		p.split = [2]int{(len(p.movs) - inHome) / 2, len(p.xmms) / 2}
	}
}

// full returns the distance from RSP after the prolog to RSP at the entry.
func (p *plan) full() int64 { return p.size + 8*int64(len(p.pushes)) }

// between puts another instruction between those of the prolog.
func (p *plan) between() {
	if p.s.Spread {
		p.asm.nop(1 + len(p.asm.ops)%3)
	}
}

// argRegs are the registers with a place in the home area.
var argRegs = [...]Reg{rcx, rdx, r8, r9}

func (p *plan) prolog() {
	p.asm.part = Prolog
	p.home()
	for i, r := range p.pushes {
		p.asm.push(r)
		p.between()
		if i == 0 && p.s.FramePointer && p.early() {
			p.asm.movFromSP(p.fp)
			p.between()
		}
	}
	if p.size > 0 {
		p.asm.sub(p.size)
		p.between()
	}
	if p.s.FramePointer && !p.early() {
		if p.s.FPOffset == 0 {
			p.asm.movFromSP(p.fp)
		} else {
			p.asm.lea(p.fp, rsp, int64(p.s.FPOffset))
		}
		p.between()
	}
	p.save(0, 0, p.split[0], p.split[1], rsp, 0)
}

// early reports whether the frame pointer is set directly after its push.
func (p *plan) early() bool { return p.f == ELF || p.s.EarlyFP }

// home stores into the caller's home area: registers to be saved, or arguments.
func (p *plan) home() {
	if !p.s.Home {
		return
	}
	if !p.s.SaveByMov {
		for i, r := range argRegs {
			p.asm.move(Store, r, rsp, 8+8*int64(i))
		}
		return
	}
	for _, m := range p.movs {
		if m.home {
			p.asm.move(Store, m.reg, rsp, m.at-p.full())
			p.between()
		}
	}
}

// save stores the movs and xmms of these ranges. base + d is the value of RSP after the prolog.
func (p *plan) save(mov, xmm, movEnd, xmmEnd int, base Reg, d int64) {
	for _, m := range p.movs[mov:movEnd] {
		if !m.home {
			p.asm.move(Store, m.reg, base, m.at+d)
			p.between()
		}
	}
	for _, m := range p.xmms[xmm:xmmEnd] {
		p.asm.move(StoreV, m.reg, base, m.at+d)
		p.between()
	}
}

// frame returns a register and a distance. Their sum in the body is the value of RSP after the
// prolog.
func (p *plan) frame() (Reg, int64) {
	switch {
	case !p.s.Dynamic:
		return rsp, 0
	case p.early():
		return p.fp, 8 - p.full()
	}
	return p.fp, -int64(p.s.FPOffset)
}

// body alternates nops and calls; its middle begins the fragment of a chained
// function.
func (p *plan) body(fn *Func) {
	p.asm.part = Body
	if p.s.Dynamic {
		p.asm.alloca(16 * int64(1+(p.s.Body*5+p.s.Calls*3)%24))
	}
	total := p.s.Body + p.s.Calls
	calls := 0
	for i := range total {
		if p.s.Chained && i == total/2 {
			p.fragment(fn)
		}
		if (i+1)*p.s.Calls/total > calls {
			calls++
			p.asm.call()
		} else {
			p.asm.nop(1 + (i*7+p.s.Body)%9)
		}
	}
	if p.s.Chained && total == 0 {
		p.fragment(fn)
	}
}

// fragment begins the part with an entry of its own, with a prolog of its own.
func (p *plan) fragment(fn *Func) {
	fn.Chained = p.asm.off
	if fn.Chained == 0 { // an entry cannot be empty
		p.asm.nop(1)
		fn.Chained = p.asm.off
	}
	p.asm.part = Prolog
	base, d := p.frame()
	p.save(p.split[0], p.split[1], len(p.movs), len(p.xmms), base, d)
	p.asm.part = Body
}

func (p *plan) epilog() {
	p.asm.part = Epilog
	if p.s.MachineFrame {
		p.asm.emit([]byte{0x0f, 0x05}, Effect{Kind: Return}) // the kernel resumes what was interrupted
		return
	}
	base, d := p.frame()
	for _, m := range p.xmms {
		p.asm.move(LoadV, m.reg, base, m.at+d)
	}
	for _, m := range p.movs {
		p.asm.move(Load, m.reg, base, m.at+d)
	}
	if p.release() {
		for i := len(p.pushes) - 1; i >= 0; i-- {
			p.asm.pop(p.pushes[i])
		}
	}
	switch {
	case p.s.TailJump:
		p.asm.jump(p.s.JumpForm)
	case p.s.RepRet:
		p.asm.emit([]byte{0xf3, 0xc3}, Effect{Kind: Return})
	default:
		p.asm.emit([]byte{0xc3}, Effect{Kind: Return})
	}
}

// release frees the allocation. It uses the frame pointer, if there is one, when RSP is not known or
// the code is shorter. It returns false if that undid the push too.
func (p *plan) release() bool {
	if p.s.FramePointer && (p.s.Dynamic || p.s.Body%2 == 0) {
		if p.f == ELF && len(p.pushes) == 1 {
			p.asm.leave()
			return false
		}
		d := p.size - int64(p.s.FPOffset)
		if p.early() {
			d = 8 - 8*int64(len(p.pushes))
		}
		p.asm.lea(rsp, p.fp, d)
		return true
	}
	if p.size > 0 {
		p.asm.add(p.size)
	}
	return true
}

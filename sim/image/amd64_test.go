package image

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// mnemonics are what an op of these effects may be.
func mnemonics(op *Op) string {
	kinds := ""
	for _, e := range op.Effects {
		kinds += fmt.Sprint(e.Kind, " ")
	}
	switch kinds {
	case "":
		return "NOP"
	case fmt.Sprint(Store, " ", Add, " "):
		return "PUSH"
	case fmt.Sprint(Load, " ", Add, " "):
		return "POP"
	case fmt.Sprint(Add, " "):
		return "ADD SUB LEA MOV"
	case fmt.Sprint(Store, " "), fmt.Sprint(Load, " "), fmt.Sprint(Set, " "):
		return "MOV"
	case fmt.Sprint(StoreV, " "), fmt.Sprint(LoadV, " "):
		return "MOVAPS"
	case fmt.Sprint(AddReg, " "):
		return "ADD"
	case fmt.Sprint(Add, " ", Load, " ", Add, " "):
		return "LEAVE"
	case fmt.Sprint(Call, " "):
		return "CALL"
	case fmt.Sprint(Return, " "):
		return "RET SYSCALL"
	case fmt.Sprint(Jump, " "):
		return "JMP"
	}
	return "?"
}

var asmRegs = [...]x86asm.Reg{x86asm.RAX, x86asm.RCX, x86asm.RDX, x86asm.RBX, x86asm.RSP,
	x86asm.RBP, x86asm.RSI, x86asm.RDI,
	x86asm.R8, x86asm.R9, x86asm.R10, x86asm.R11, x86asm.R12, x86asm.R13, x86asm.R14, x86asm.R15}

// checkOp decodes an op with the disassembler and holds its operands against the
// effects.
func checkOp(op *Op) string {
	inst, err := x86asm.Decode(op.Code, 64)
	if err != nil || inst.Len != len(op.Code) {
		return fmt.Sprintf("%v, %d bytes", err, inst.Len)
	}
	if !strings.Contains(mnemonics(op), inst.Op.String()) {
		return "is " + inst.String()
	}
	if len(op.Effects) == 0 {
		return ""
	}
	if want := operands(op, &inst); want != "" {
		return inst.String() + ", not " + want
	}
	return ""
}

// operands reports what is wrong with an instruction's operands.
func operands(op *Op, inst *x86asm.Inst) string {
	e := op.Effects[0]
	mem := x86asm.Mem{Base: asmRegs[e.Base], Scale: 0, Disp: e.Imm}
	vector := x86asm.Reg(x86asm.X0 + x86asm.Reg(e.Reg))
	var want []x86asm.Arg
	switch inst.Op {
	case x86asm.PUSH, x86asm.POP:
		want = []x86asm.Arg{asmRegs[e.Reg]}
	case x86asm.SUB:
		want = []x86asm.Arg{x86asm.RSP, x86asm.Imm(-e.Imm)}
	case x86asm.LEA:
		want = []x86asm.Arg{asmRegs[e.Reg], mem}
	case x86asm.ADD:
		if want = []x86asm.Arg{x86asm.RSP, x86asm.Imm(e.Imm)}; e.Kind == AddReg {
			want[1] = x86asm.RAX
		}
	case x86asm.MOV:
		switch e.Kind {
		case Set:
			want = []x86asm.Arg{asmRegs[e.Reg], x86asm.Imm(e.Imm)}
		case Add:
			want = []x86asm.Arg{asmRegs[e.Reg], asmRegs[e.Base]}
		case Store:
			want = []x86asm.Arg{mem, asmRegs[e.Reg]}
		case Load:
			want = []x86asm.Arg{asmRegs[e.Reg], mem}
		}
	case x86asm.MOVAPS:
		if want = []x86asm.Arg{vector, mem}; e.Kind == StoreV {
			want = []x86asm.Arg{mem, vector}
		}
	default:
		return ""
	}
	for i, w := range want {
		got := inst.Args[i]
		if m, ok := got.(x86asm.Mem); ok { // of the decoder: a scale without an index, displacements without a sign
			m.Scale, m.Disp = 0, int64(int32(m.Disp))
			got = m
		}
		if got != w {
			return fmt.Sprintf("%v as operand %d", w, i)
		}
	}
	return ""
}

func TestEncoding(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	seen := map[string]bool{}
	for i := range 4000 {
		fn := RandomAMD64(r, Format(i%2), "f")
		off := uint32(0)
		for j := range fn.Ops {
			op := &fn.Ops[j]
			must.Equal(t, op.Off, off, "op %d at", j)
			off += uint32(len(op.Code))
			must.Equal(t, checkOp(op), "", "function %d: % x %v", i, op.Code, op.Effects)
			inst, _ := x86asm.Decode(op.Code, 64)
			seen[fmt.Sprintf("%v%d", inst.Op, len(op.Code))] = true
		}
	}
	for _, want := range []string{"PUSH1", "PUSH2", "POP2", "LEAVE1", "NOP1", "NOP9", "RET1", "RET2",
		"SUB4", "SUB7", "ADD3", "ADD7",
		"LEA4", "LEA7", "MOVAPS5", "MOVAPS6", "MOVAPS9", "CALL5", "JMP5", "JMP6", "JMP3", "MOV8"} {
		expect.True(t, seen[want], "no %s was made", want)
	}
}

// TestUnwindForms: every opcode is made, by name, and pe.Check finds nothing
// wrong with any information.
func TestUnwindForms(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	seen := map[string]int{}
	for i := range 40 {
		var funcs []Func
		for j := range 100 {
			funcs = append(funcs, RandomAMD64(r, PE, fmt.Sprintf("f%d", j)),
				RandomTrapAMD64(r, fmt.Sprintf("t%d", j)))
		}
		im, err := Build(AMD64, PE, "forms.dll", 0x180000000, funcs)
		must.Equal(t, err, nil, i)
		count(t, im, seen)
	}
	for _, want := range []string{"0/", "1/0", "1/1", "2/", "3/", "4/", "5/", "8/",
		"9/", "10/0", "10/1", "chained"} {
		expect.True(t, seen[want] != 0, "no %s: %v", want, seen)
	}
	t.Log(seen)
}

func count(t *testing.T, im *Image, seen map[string]int) {
	f, err := pe.New(im.File, im.Name)
	must.True(t, err == nil && len(f.Problems()) == 0, "%v %v", err, f.Problems())
	for i := range f.AMD64().Len() {
		fn := f.AMD64().Entry(i)
		info, fault := f.AMD64().Info(fn.Unwind)
		must.True(t, fault.OK(), "%+v", fault)
		fault = info.Check(fn)
		must.True(t, fault.OK(), "%+v: %+v", fn, fault)
		if info.Chained() {
			seen["chained"]++
		}
		for codes := info.Codes; len(codes) > 0; {
			c, _ := info.Code(codes)
			codes = codes[c.Size():]
			name := fmt.Sprintf("%d/", c.Op)
			if c.Op == peamd64.UWOP_ALLOC_LARGE || c.Op == peamd64.UWOP_PUSH_MACHFRAME {
				name += fmt.Sprint(c.Info)
			}
			seen[name]++
		}
	}
}

// TestUnwindInfo: the bytes of a prolog of Microsoft's style, by hand.
func TestUnwindInfo(t *testing.T) {
	cases := []struct {
		name  string
		shape ShapeAMD64
		want  string
	}{
		// push rbp; sub rsp,30h; lea rbp,[rsp+20h]; movaps [rsp+20h],xmm6
		{"frame", ShapeAMD64{Saves: []Reg{rbp}, SavesXMM: []Reg{6}, Calls: 1,
			FramePointer: true, FPOffset: 32},
			"01 0f 05 25 0f 68 02 00 0a 03 05 52 01 50 00 00"},
		// mov [rsp+8],rbx; push rdi; sub rsp,20h: the save counts from the end on
		{"home", ShapeAMD64{Saves: []Reg{rbx}, Calls: 1, Home: true, SaveByMov: true, Alloc: 8},
			"01 09 03 00 09 34 06 00 09 42 00 00"},
		{"alloc large", ShapeAMD64{Alloc: 0x1000 + 8}, "01 07 02 00 07 01 01 02"},
		{"trap", ShapeAMD64{MachineFrame: true, ErrorCode: true, Saves: []Reg{r12}},
			"01 02 02 00 02 c0 00 1a"},
	}
	for _, c := range cases {
		fn, err := c.shape.Func(PE, c.name)
		must.Equal(t, err, nil, c.name)
		fn.RVA = 0x1010 // not one of those in long forms
		got, err := describeAMD64(&fn, 0, fn.Size)
		expect.True(t, err == nil && fmt.Sprintf("% x", got) == c.want,
			"%s: % x, %v, not %s", c.name, got, err, c.want)
	}
}

func TestRefused(t *testing.T) {
	cases := []struct {
		name  string
		f     Format
		shape ShapeAMD64
	}{
		{"volatile", PE, ShapeAMD64{Saves: []Reg{rax}}},
		{"twice", PE, ShapeAMD64{Saves: []Reg{rbx, rbx}}},
		{"no register", PE, ShapeAMD64{Saves: []Reg{77}}},
		{"rsi is volatile in System V", ELF, ShapeAMD64{Saves: []Reg{rsi}}},
		{"xmm in System V", ELF, ShapeAMD64{SavesXMM: []Reg{6}}},
		{"volatile xmm", PE, ShapeAMD64{SavesXMM: []Reg{5}}},
		{"home in System V", ELF, ShapeAMD64{Home: true}},
		{"chain in ELF", ELF, ShapeAMD64{Chained: true}},
		{"trap in ELF", ELF, ShapeAMD64{MachineFrame: true}},
		{"error code alone", PE, ShapeAMD64{ErrorCode: true}},
		{"alloca without frame", PE, ShapeAMD64{Dynamic: true}},
		{"leaf that calls", PE, ShapeAMD64{Leaf: true, Calls: 1}},
		{"offset", PE, ShapeAMD64{FramePointer: true, FPOffset: 8}},
		{"far offset", PE, ShapeAMD64{FramePointer: true, FPOffset: 256}},
		{"stores below an early frame", PE,
			ShapeAMD64{FramePointer: true, EarlyFP: true, SavesXMM: []Reg{6}}},
		{"pushes below an early frame, then alloca", PE,
			ShapeAMD64{FramePointer: true, EarlyFP: true, Dynamic: true, Saves: []Reg{rbx}}},
		{"huge", PE, ShapeAMD64{Alloc: 1 << 30}},
		{"negative", PE, ShapeAMD64{Calls: -1}},
		{"chained to nothing", PE, ShapeAMD64{Chained: true, NoInfo: true}},
	}
	for _, c := range cases {
		fn, err := c.shape.Func(c.f, c.name)
		expect.True(t, err != nil, "%s: %+v", c.name, fn)
	}
}

// TestRandomIsDeterministic: the same number makes the same bytes.
func TestRandomIsDeterministic(t *testing.T) {
	make := func() Func { return RandomAMD64(rand.New(rand.NewPCG(9, 9)), PE, "f") }
	a, b := make(), make()
	expect.True(t, cmptest.Diff(b, a) == "", "%v and %v", a, b)
}

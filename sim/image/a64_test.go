package image

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// textA64 is what a disassembler says of an op that has these effects; "" where
// effects do not tell it.
func textA64(op *Op) string {
	if len(op.Effects) == 0 {
		return ""
	}
	e := op.Effects[0]
	switch e.Kind {
	case Sign, Auth:
		return ""
	case Set:
		return fmt.Sprintf("MOV X%d, #%#x", e.Reg, uint64(e.Imm))
	case AddReg:
		return fmt.Sprintf("ADD SP, SP, X%d", e.Base)
	case Add:
		return addText(e)
	case Call:
		return "BL"
	case Return:
		return "RET X30"
	case Jump:
		return "BR X16"
	}
	return spillText(op.Effects)
}

func nameA64(r Reg) string {
	if r == 31 {
		return "SP"
	}
	return fmt.Sprintf("X%d", r)
}

func addText(e Effect) string {
	regs, n, op := nameA64(e.Reg)+", "+nameA64(e.Base), e.Imm, "ADD"
	if n == 0 {
		return "MOV " + regs
	}
	if n < 0 {
		op, n = "SUB", -n
	}
	if n >= 4096 {
		return fmt.Sprintf("%s %s, #%#x, LSL #12", op, regs, n>>12)
	}
	return fmt.Sprintf("%s %s, #%#x", op, regs, n)
}

// spillText is of loads and stores; the address of a store that moves SP is told
// from the SP before it, so the distances of both are the same.
func spillText(effects []Effect) string {
	e := effects[0]
	name := map[EffectKind]string{Store: "ST", StoreV: "ST", Load: "LD", LoadV: "LD"}[e.Kind]
	file := "X"
	if e.Kind == StoreV || e.Kind == LoadV {
		file = "D"
	}
	regs, rest := fmt.Sprintf("%s%d", file, e.Reg), effects[1:]
	if len(rest) > 0 && rest[0].Kind == e.Kind {
		if rest[0].Imm != e.Imm+8 {
			return "not in a row"
		}
		regs, rest, name = fmt.Sprintf("%s, %s%d", regs, file, rest[0].Reg), rest[1:], name+"P"
	} else {
		name += "R"
	}
	mem := fmt.Sprintf("[SP,#%d]", e.Imm)
	if e.Imm == 0 {
		mem = "[SP]"
	}
	if len(rest) == 1 && rest[0].Imm < 0 {
		if rest[0].Imm != e.Imm {
			return "not at the new SP"
		}
		mem += "!"
	} else if len(rest) == 1 {
		mem = fmt.Sprintf("[SP],#%d", rest[0].Imm)
	}
	return name + " " + regs + ", " + mem
}

func TestEncodingA64(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 64))
	seen := map[string]bool{}
	for i := range 4000 {
		fn := RandomARM64(r, Format(i%2), "f")
		for j := range fn.Ops {
			op := &fn.Ops[j]
			inst, err := arm64asm.Decode(op.Code)
			must.True(t, err == nil && len(op.Code) == 4 && op.Off == uint32(4*j),
				"function %d, op %d at %#x: % x: %v", i, j, op.Off, op.Code, err)
			if got, want := inst.String(), textA64(op); !strings.HasPrefix(got, want) {
				t.Fatalf("function %d, op %d: % x %v is %s, not %s", i, j, op.Code, op.Effects, got, want)
			}
			seen[form(inst.String())] = true
		}
	}
	for _, want := range []string{"STP X!", "STP X", "LDP X", "LDP X+", "STR X!", "STR X", "LDR X",
		"LDR X+", "STP D!", "STP D", "LDP D",
		"LDP D+", "STR D!", "STR D", "LDR D", "LDR D+", "SUB S", "ADD S", "ADD X", "MOV X", "HINT #",
		"BL .", "BLR X", "RET X", "BR X"} {
		expect.True(t, seen[want], "no %s was made", want)
	}
}

// form is an instruction without its registers and numbers: ! for a pre-index, +
// for a post-index.
func form(s string) string {
	op, args, _ := strings.Cut(s, " ")
	if args == "" {
		return op
	}
	f := op + " " + args[:1]
	switch {
	case strings.HasSuffix(s, "!"):
		f += "!"
	case strings.Contains(s, "],"):
		f += "+"
	}
	return f
}

// TestSignCodesA64: the disassembler knows pointer authentication as hints only.
// Arm ARM, C6.2: CRm and op2 are 3,1 for paciasp, 3,3 pacibsp, 3,5 autiasp, 3,7
// autibsp.
func TestSignCodesA64(t *testing.T) {
	for f, want := range map[Format][2]string{PE: {"HINT #0x1b", "HINT #0x1f"},
		ELF: {"HINT #0x19", "HINT #0x1d"}} {
		fn := must.Get(ShapeARM64{PAC: true, FramePointer: true}.Func(f, "f"))(t)
		first, _ := arm64asm.Decode(fn.Ops[0].Code)
		last, _ := arm64asm.Decode(fn.Ops[len(fn.Ops)-2].Code)
		expect.Equal(t, [2]string{first.String(), last.String()}, want, f)
	}
}

// TestPackedA64: the words of canonical prologs and the instructions they stand
// for, from Microsoft's "ARM64 exception handling".
func TestPackedA64(t *testing.T) {
	cases := []struct {
		name  string
		shape ShapeARM64
		code  string // without the body
		want  string // RegF RegI H CR FrameSize
	}{
		{"leaf", ShapeARM64{Leaf: true}, "RET X30", "0 0 0 0 0"},
		{"local", ShapeARM64{FrameSize: 32}, "SUB SP, SP, #0x20; ADD SP, SP, #0x20; RET X30", "0 0 0 0 2"},
		{"one and lr", ShapeARM64{RegI: 1, Calls: 1},
			"SUB SP, SP, #0x10; STP X19, X30, [SP]; LDP X19, X30, [SP]; ADD SP, SP, #0x10; RET X30",
			"0 1 0 1 1"},
		{"lr alone", ShapeARM64{Calls: 1}, "STR X30, [SP,#-16]!; LDR X30, [SP],#16; RET X30", "0 0 0 1 1"},
		{"two and lr", ShapeARM64{RegI: 2, Calls: 1, FrameSize: 48},
			"STP X19, X20, [SP,#-32]!; STR X30, [SP,#16]; SUB SP, SP, #0x10; ADD SP, SP, #0x10; LDR X30, [SP,#16]; LDP X19, X20, [SP],#32; RET X30", "0 2 0 1 3"},
		{"three and lr", ShapeARM64{RegI: 3, Calls: 1},
			"STP X19, X20, [SP,#-32]!; STP X21, X30, [SP,#16]; LDP X21, X30, [SP,#16]; LDP X19, X20, [SP],#32; RET X30", "0 3 0 1 2"},
		{"vectors", ShapeARM64{RegF: 3},
			"STP D8, D9, [SP,#-32]!; STR D10, [SP,#16]; LDR D10, [SP,#16]; LDP D8, D9, [SP],#32; RET X30",
			"2 0 0 0 2"},
		{"chained, homes", ShapeARM64{RegI: 1, RegF: 2, FramePointer: true, Homing: true},
			"STR X19, [SP,#-96]!; STP D8, D9, [SP,#8]; STP X0, X1, [SP,#24]; STP X2, X3, [SP,#40]; STP X4, X5, [SP,#56]; STP X6, X7, [SP,#72]; " +
				"STP X29, X30, [SP,#-16]!; MOV X29, SP; LDP X29, X30, [SP],#16; LDP D8, D9, [SP,#8]; LDR X19, [SP],#96; RET X30", "1 1 1 3 7"},
		{"signed, large", ShapeARM64{PAC: true, FramePointer: true, FrameSize: 4096 + 32},
			"HINT #0x1b; SUB SP, SP, #0xff0; SUB SP, SP, #0x30; STP X29, X30, [SP]; MOV X29, SP; LDP X29, X30, [SP]; ADD SP, SP, #0x30; ADD SP, SP, #0xff0; HINT #0x1f; RET X30", "0 0 0 2 258"},
	}
	for _, c := range cases {
		c.shape.Packed = true
		fn, err := c.shape.Func(PE, c.name)
		if err != nil {
			t.Error(c.name, err)
			continue
		}
		var code []string
		for i := range fn.Ops {
			if inst, _ := arm64asm.Decode(fn.Ops[i].Code); fn.Ops[i].Part != Body {
				code = append(code, inst.String())
			}
		}
		expect.Equal(t, strings.Join(code, "; "), c.code, c.name)
		w, ok := packARM64(&fn)
		got := fmt.Sprint(w>>13&7, w>>16&15, w>>20&1, w>>21&3, w>>23)
		expect.True(t, ok && got == c.want, "%s: %v, %s, not %s", c.name, ok, got, c.want)
	}
}

// TestXdataA64: whole records, byte by byte, with the first turn's choices.
func TestXdataA64(t *testing.T) {
	cases := []struct {
		name  string
		shape ShapeARM64
		want  string
	}{
		// stp x29,x30,[sp,#-32]!; mov x29,sp; two fillers; ldp; ret: length 6, E,
		// one word of codes, the epilog's from index 1 on.
		{"chained", ShapeARM64{Layout: LayoutRecordFirst, FramePointer: true, FrameSize: 32, Body: 2},
			"06 00 60 08 e1 83 e4 e3"},
		// sub sp; stp x19,x20; stp x29,x30,[sp,#16]; add x29,sp,#16; the reverse,
		// but for the add; ret.
		{"all at once", ShapeARM64{Layout: LayoutAllocFirst, FramePointer: true, RegI: 2, FrameSize: 0x400},
			"08 00 a0 10 e2 02 42 c8 00 c0 40 e4"},
		// Two allocations: 15 pages with alloc_l, 16 bytes with alloc_s.
		{"large", ShapeARM64{Layout: LayoutAllocFirst, FrameSize: 0xf010},
			"05 00 20 10 01 e0 00 0f 00 e4 e3 e3"},
		// The epilog has nothing for the nop: codes of its own, from index 3
		// on, then padding.
		{"spread", ShapeARM64{Xdata: true, FrameSize: 16}, "04 00 e0 10 01 e3 e4 01 e4 e3 e3 e3"},
	}
	for _, c := range cases {
		fn, err := c.shape.Func(PE, c.name)
		must.Equal(t, err, nil, c.name)
		parts := partsOf(&fn)
		got, err := parts[0].record(&fn, turnsOf(0))
		expect.True(t, err == nil && fmt.Sprintf("% x", got) == c.want,
			"%s: % x, %v, not %s", c.name, got, err, c.want)
	}
}

// TestUnwindFormsA64: the reader finds nothing wrong with any information, and
// every form of it is made.
func TestUnwindFormsA64(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 64))
	seen := map[string]int{}
	for range 20 {
		var funcs []Func
		for j := range 100 {
			funcs = append(funcs, RandomARM64(r, PE, fmt.Sprint("f", j)))
		}
		im, err := Build(ARM64, PE, "m.dll", 0x180000000, funcs)
		must.Do(t, err)
		f, err := pe.FromMemory(im.File, "m.dll")
		must.True(t, err == nil && len(f.Problems()) == 0, "%v %v", err, f.Problems())
		formsA64(im, seen)
	}
	for _, want := range wantFormsA64 {
		expect.True(t, seen[want] != 0, "no %s was made", want)
	}
	t.Log(seen)
}

var wantFormsA64 = []string{"packed", "packed fragment", "xdata", "extended", "E", "scope", "no epilog",
	"alloc_s", "alloc_m", "save_r19r20_x", "save_fplr", "save_fplr_x", "save_regp", "save_regp_x",
	"save_reg", "save_reg_x", "save_lrpair",
	"save_fregp", "save_fregp_x", "save_freg", "save_freg_x", "set_fp", "add_fp", "nop", "end",
	"end_c", "save_next", "pac_sign_lr"}

// formsA64 counts the forms in an image's directory.
func formsA64(im *Image, seen map[string]int) {
	var records [][]byte
	pdata, err := pdataARM64(im, func(b []byte) uint32 { records = append(records, b); return 0 })
	if err != nil {
		panic(err)
	}
	for i := 4; i < len(pdata); i += 8 {
		seen[[]string{"", "packed", "packed fragment"}[pdata[i]&3]]++
	}
	for _, b := range records {
		seen["xdata"]++
		for _, code := range recordForms(b, seen) {
			seen[code]++
		}
	}
}

// recordForms reads a record's header and names its codes.
func recordForms(b []byte, seen map[string]int) (names []string) {
	w := uint32(b[2]) | uint32(b[3])<<8
	count, words, at := w>>6&31, w>>11, 4
	if count == 0 && words == 0 {
		seen["extended"]++
		count, words, at = uint32(b[4])|uint32(b[5])<<8, uint32(b[6]), 8
	}
	switch {
	case w>>5&1 != 0:
		seen["E"]++
	case count > 0:
		seen["scope"]++
		at += 4 * int(count)
	default:
		seen["no epilog"]++
	}
	for end := at + 4*int(words); at < end; {
		name, n := codeName(b[at], b[min(at+1, len(b)-1)])
		names = append(names, name)
		at += n
	}
	return names
}

// codeName is of the table "Unwind codes".
func codeName(c, second byte) (string, int) {
	for _, x := range []struct {
		mask, value uint16
		name        string
		n           int
	}{
		{0xe000, 0x0000, "alloc_s", 1}, {0xe000, 0x2000, "save_r19r20_x", 1},
		{0xc000, 0x4000, "save_fplr", 1}, {0xc000, 0x8000, "save_fplr_x", 1},
		{0xf800, 0xc000, "alloc_m", 2}, {0xfc00, 0xc800, "save_regp", 2}, {0xfc00, 0xcc00, "save_regp_x", 2},
		{0xfc00, 0xd000, "save_reg", 2},
		{0xfe00, 0xd400, "save_reg_x", 2}, {0xfe00, 0xd600, "save_lrpair", 2},
		{0xfe00, 0xd800, "save_fregp", 2}, {0xfe00, 0xda00, "save_fregp_x", 2},
		{0xfe00, 0xdc00, "save_freg", 2}, {0xff00, 0xde00, "save_freg_x", 2}, {0xff00, 0xe000, "alloc_l", 4},
		{0xff00, 0xe100, "set_fp", 1},
		{0xff00, 0xe200, "add_fp", 2}, {0xff00, 0xe300, "nop", 1}, {0xff00, 0xe400, "end", 1},
		{0xff00, 0xe500, "end_c", 1}, {0xff00, 0xe600, "save_next", 1},
		{0xff00, 0xfc00, "pac_sign_lr", 1},
	} {
		if (uint16(c)<<8|uint16(second))&x.mask == x.value {
			return x.name, x.n
		}
	}
	return fmt.Sprintf("unknown %#x", c), 1
}

func TestRefusedA64(t *testing.T) {
	cases := []struct {
		name  string
		f     Format
		shape ShapeARM64
	}{
		{"too many registers", PE, ShapeARM64{RegI: 11}},
		{"too many vector registers", PE, ShapeARM64{RegF: 9}},
		{"huge", PE, ShapeARM64{FrameSize: 1 << 30}},
		{"negative", ELF, ShapeARM64{Calls: -1}},
		{"alloca without frame", PE, ShapeARM64{Dynamic: true}},
		{"leaf that calls", PE, ShapeARM64{Leaf: true, Calls: 1}},
		{"leaf that signs", PE, ShapeARM64{Leaf: true, PAC: true}},
		{"packed in ELF", ELF, ShapeARM64{Packed: true}},
		{"fragment in ELF", ELF, ShapeARM64{Fragment: true}},
		{"one vector register, packed", PE, ShapeARM64{RegF: 1, Packed: true}},
		{"signed without a frame record, packed", PE, ShapeARM64{PAC: true, Packed: true}},
		{"another prolog, packed", PE, ShapeARM64{Layout: LayoutAllocFirst, RegI: 2, Packed: true}},
		{"a large frame, packed", PE, ShapeARM64{FrameSize: 8192, Packed: true}},
		{"alloca, packed", PE, ShapeARM64{Layout: LayoutAllocFirst, FramePointer: true,
			Dynamic: true, Packed: true}},
		{"frame without unwind data", PE, ShapeARM64{RegI: 2, NoInfo: true}},
	}
	for _, c := range cases {
		fn, err := c.shape.Func(c.f, c.name)
		expect.True(t, err != nil, "%s: %+v", c.name, fn)
	}
}

// TestRandomA64IsDeterministic: the same number makes the same bytes.
func TestRandomA64IsDeterministic(t *testing.T) {
	draw := func() Func { return RandomARM64(rand.New(rand.NewPCG(9, 9)), PE, "f") }
	a, b := draw(), draw()
	expect.True(t, cmptest.Diff(b, a) == "", "%v and %v", a, b)
}

// TestFrameOf512 checks that the canonical prolog never pushes a frame record with 512 bytes. The epilog
// could not pop it, because the largest step of ldp is 504 bytes.
func TestFrameOf512(t *testing.T) {
	for size, want := range map[uint32]int64{496: 496, 512: 528, 528: 528} {
		fn := must.Get(ShapeARM64{FramePointer: true, FrameSize: size,
			Packed: true}.Func(PE, "f"))(t)
		deepest := int64(0)
		for _, r := range fn.Rows(ARM64) {
			deepest = max(deepest, r.Off)
		}
		expect.Equal(t, deepest, want, "bytes of a frame of %d", size)
	}
}

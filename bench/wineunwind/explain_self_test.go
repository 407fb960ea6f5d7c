package wineunwind

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// These tests check the comparison: it finds every difference, and it explains only the known classes of
// them.

func sample() answer {
	a := answer{begin: 0x1000, frame: 0x2000, handler: 0x3000}
	a.regs.RIP, a.regs.Known = 0x4000, allKnown
	for i := range a.regs.GPR {
		a.regs.GPR[i] = 0x5000 + uint64(i)
	}
	for i := range a.regs.XMM {
		a.regs.XMM[i] = context.XMM{0x6000 + uint64(i), 0x7000}
	}
	return a
}

func TestEveryDifferenceIsSeen(t *testing.T) {
	cases := map[string]func(a *answer){
		"rip":     func(a *answer) { a.regs.RIP++ },
		"frame":   func(a *answer) { a.frame++ },
		"handler": func(a *answer) { a.handler = 0 },
		"begin":   func(a *answer) { a.begin++ },
		"leaf":    func(a *answer) { a.how = leaf },
		"refused": func(a *answer) { a.how, a.stop = refused, unwind.BadInfo },
		"unknown": func(a *answer) { a.regs.Known &^= 1 << context.RBX },
	}
	for _, r := range []int{context.RBX, context.RSP, context.RBP, context.RSI, context.RDI, context.R12,
		context.R13, context.R14, context.R15} {
		cases["register "+string(rune('a'+r))] = func(a *answer) { a.regs.GPR[r] ^= 1 << 63 }
	}
	for i := range 10 {
		cases["xmm low "+string(rune('6'+i))] = func(a *answer) { a.regs.XMM[i][0]++ }
		cases["xmm high "+string(rune('6'+i))] = func(a *answer) { a.regs.XMM[i][1]++ }
	}
	wine := sample()
	must.Equal(t, differ(&wine, &wine), "", "equal answers differ")
	for name, change := range cases {
		ours := sample()
		change(&ours)
		expect.True(t, differ(&ours, &wine) != "", "%s: not seen", name)
	}
	wine.how = refused
	ours := sample()
	expect.True(t, differ(&ours, &wine) != "", "an answer where Wine faults: not seen")
	ours = answer{how: refused, stop: unwind.BadInfo}
	expect.True(t, differ(&ours, &wine) != "", "bad unwind data where Wine faults: not seen")
	ours = answer{how: refused, stop: unwind.Unreadable}
	expect.True(t, differ(&ours, &wine) == "", "both read unmapped memory: not the same")
}

// picture is an image of one function, at RVA 1000h, of the given code; its
// unwind information is at 2000h.
func picture(code, info []byte) *pe.File {
	pdata := binary.LittleEndian.AppendUint32(nil, 0x1000)
	pdata = binary.LittleEndian.AppendUint32(pdata, 0x1000+uint32(len(code)))
	pdata = binary.LittleEndian.AppendUint32(pdata, 0x2000)
	return pe.FromBlocks(pe.MachineAMD64, pdata,
		[]pe.Block{{RVA: 0x1000, Data: code}, {RVA: 0x2000, Data: info}})
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	pushRBX = "01 01 01 00 01 30 00 00" // push rbx, a prolog of one byte
	late    = "01 09 01 00 01 30 00 00" // the same with a prolog of nine bytes
	nothing = "01 00 00 00"
	withR12 = "01 0a 03 0c 0a 03 05 02 02 c0 00 00" // push r12; sub rsp, 8; mov r12, rsp
	withRBX = "01 05 02 03 05 03 01 30"             // push rbx; mov rbx, rsp
)

// TestClasses checks that each class explains its own point: a function, and an offset in it, for which Wine
// has only undone the unwind codes. No class explains an answer of ours with one changed bit.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name, info, code string
		at               uint32
		want             string // "" = nothing explains it
	}{
		{"return", pushRBX, "53 90 5b c3", 2, ""},
		{"jump out", pushRBX, "53 90 5b e9 00 01 00 00", 2, "tail jump"},
		{"jump out, short", pushRBX, "53 90 5b eb 70", 2, "tail jump"},
		{"jump to itself", pushRBX, "53 90 5b eb fb", 2, "tail jump"},
		{"jump through memory", pushRBX, "53 90 5b ff 25 00 00 00 00", 2, "tail jump"},
		{"jump through a register", pushRBX, "53 90 5b 48 ff e0", 2, "tail jump"},
		{"jump through what a register points to", pushRBX, "53 90 5b 48 ff 22", 2, "tail jump"},
		{"a switch's jump", pushRBX, "53 90 5b ff e0", 2, ""},
		{"a switch's jump through memory", pushRBX, "53 90 5b ff 24 c8", 2, ""},
		{"return in the prolog", late, "53 90 5b c3 90 90 90 90 90 90", 2, "epilog inside the prolog"},
		{"no epilog in the prolog", late, "53 90 90 c3 90 90 90 90 90 90", 1, ""},
		{"no codes", nothing, "48 83 c4 08 c3", 0, "epilog of an entry without codes"},
		{"bnd", pushRBX, "53 90 5b f2 c3", 2, "bnd ret"},
		{"lea from r12", withR12,
			"41 54 48 83 ec 08 4c 8b e4 90 49 8d 64 24 08 41 5c c3", 10, "lea from R12"},
	} {
		f, q := ask(c.code, c.info, c.at)
		ours := step(f, q.p, q.mem)
		q = newQuestion(f, q.p, &ours, q.wine, q.mem)
		got, _ := q.explain()
		expect.True(t, got == c.want, "%s: explained by %q, want %q", c.name, got, c.want)
		for _, bend := range []func(a *answer){
			func(a *answer) { a.regs.GPR[context.RBX] ^= 4 },
			func(a *answer) { a.regs.RIP ^= 4 },
			func(a *answer) { a.regs.GPR[context.RSP] += 8 },
			func(a *answer) { a.regs.XMM[3][1]++ },
			func(a *answer) { a.frame++ },
			func(a *answer) { a.handler++ },
		} {
			bent := ours
			bend(&bent)
			q.ours = &bent
			if got, elsewhere := q.explain(); got != "" && !elsewhere {
				t.Errorf("%s: a wrong answer of ours is explained by %q", c.name, got)
			}
		}
	}
}

// TestClassesAskedElsewhere checks classes whose condition is about the body of the function. The condition
// is evaluated with the answer that we give from the unwind codes.
func TestClassesAskedElsewhere(t *testing.T) {
	for _, c := range []struct {
		name, info, code string
		at               uint32
		want             string
	}{
		{"prefix", pushRBX, "53 90 90 42 c3 90", 3, "ret with a REX prefix"},
		{"jump inside", withRBX, "53 48 8b dc 90 eb 00 5b c3 90 90", 5,
			"jump inside the function to an epilog"},
		{"lea from another register", pushRBX, "53 90 48 8d 65 08 c3 90", 2,
			"lea from an undeclared register"},
		{"lea from the declared one", withRBX, "53 48 8b dc 90 48 8d 63 00 5b c3", 5, ""},
	} {
		f, q := ask(c.code, c.info, c.at)
		ours := step(f, q.p, q.mem)
		wine := ours
		wine.handler = 0
		if c.want != "lea from an undeclared register" {
			wine.regs.RIP++
		}
		q = newQuestion(f, q.p, &ours, &wine, q.mem)
		got, elsewhere := q.explain()
		if elsewhere {
			p, ok := q.elsewhere()
			expect.True(t, ok && p.regs == q.p.regs && p.rva != q.p.rva, "%s: not asked elsewhere", c.name)
		}
		expect.True(t, got == c.want && elsewhere == (c.want != ""), "%s: explained by %q, want %q", c.name,
			got, c.want)
	}
}

// TestRetImm16 needs an answer that differs from the unwind codes.
func TestRetImm16(t *testing.T) {
	f, q := ask("53 90 5b c2 20 00", pushRBX, 2)
	ours := step(f, q.p, q.mem)
	wine := ours
	wine.regs.GPR[context.RSP] += 0x20
	got, _ := newQuestion(f, q.p, &ours, &wine, q.mem).explain()
	expect.Equal(t, got, "ret imm16", "explained by")
	wine.regs.GPR[context.RSP] += 8
	got, _ = newQuestion(f, q.p, &ours, &wine, q.mem).explain()
	expect.Equal(t, got, "", "another RSP is explained by")
}

// ask returns a question about code. It has no answer of ours, and a made-up answer of Wine.
func ask(code, info string, at uint32) (*pe.File, *question) {
	f := picture(unhex(code), unhex(info))
	fr := frameOf(f, f.AMD64().Entry(0))
	p := &point{rva: 0x1000 + at, regs: fr.registers(0x1000 + at)}
	mem := memory.New(memory.Run{Addr: stackBase, Data: stackBytes()})
	wine := sample()
	wine.frame = p.regs.SP()
	if fr.declared != 0 {
		for i := range p.regs.GPR {
			if fr.declared>>i&1 != 0 {
				wine.frame = p.regs.GPR[i]
			}
		}
	}
	return f, newQuestion(f, p, nil, &wine, mem)
}

func TestAnswersAreChecked(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1<<32), 0x5000)
	one := append(head[:len(head):len(head)], make([]byte, binary.Size(wireAnswer{}))...)
	for name, c := range map[string]struct {
		b    []byte
		n    int
		size uint32
		ok   bool
	}{
		"one answer":       {one, 1, 0x5000, true},
		"none":             {head, 0, 0x5000, true},
		"another image":    {one, 1, 0x6000, false},
		"nothing":          {nil, 0, 0x5000, false},
		"one is missing":   {one, 2, 0x5000, false},
		"one is cut":       {one[:len(one)-1], 1, 0x5000, false},
		"one is left over": {one, 0, 0x5000, false},
	} {
		_, err := parse(c.b, c.size, c.n)
		expect.True(t, (err == nil) == c.ok, "%s: %v", name, err)
	}
}

func TestWineLoops(t *testing.T) {
	for code, want := range map[string]bool{
		"eb fe":          true,  // jmp $
		"5b eb fd":       true,  // to itself, over a pop
		"eb 00 eb fc":    true,  // two jumps
		"eb 00 c3":       false, // to a return
		"eb 7f":          false, // out of the function
		"90 eb fd":       false, // what Wine does not look behind
		"e9 fb ff ff ff": true,
	} {
		b := unhex(code)
		f := picture(b, unhex(nothing))
		expect.Equal(t, wineLoops(f, f.AMD64().Entry(0), 0x1000), want, code)
	}
}

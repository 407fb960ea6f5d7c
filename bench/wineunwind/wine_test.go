// Package wineunwind holds our unwinding of x64 PE functions against a second
// opinion that shares nothing with it: RtlVirtualUnwind of Wine.
//
// Sources: Microsoft, "x64 exception handling"; dotnet/runtime
// src/coreclr/unwinder/amd64/unwinder.cpp for what Windows does where the two
// disagree; wine-mirror/wine dlls/ntdll/signal_x86_64.c (8.0) for why Wine does
// something else.
//
// Glossary. A *point* is an address of an image with registers and a stack. An
// *answer* is the caller's registers, EstablisherFrame and handler. A *class*
// is a known fault of Wine: a narrow condition, and what is right there.
//
// Strategy: the test compiles testdata/harness.c with mingw and gives it all
// points of an image in one run. Points are begins, prologs, some of the body,
// and all that may be an epilog, of functions spread evenly over the exception
// directory. Stack and registers are noise, the same in each run, but for what
// must point into the stack. Where the answers differ, the rest of the epilog
// is run instruction by instruction, decoded by golang.org/x/arch, as a third
// opinion: a class explains a difference only where that agrees with us. It is
// asked where Wine and we agree, too: two may make the same mistake.
//
// Known gaps: return addresses (a step that is not exact) look up another
// address and are not asked for; what Wine 8 would loop in is left out, counted.
package wineunwind

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// image is one PE image to ask about.
type image struct {
	name      string
	path      string // a pattern, below the project's folder if not absolute; "" = make
	make      func(t *testing.T, dir string) string
	functions int // at most so many of its entries
}

const (
	core22 = ".cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2/"
	mingw  = "/usr/lib/gcc/x86_64-w64-mingw32/*-posix/"
)

// images are the tested images. They contain native code of the CLR by an old and a new
// compiler, and its compiled managed code with indirect entries and chains. They also contain
// C and C++ by GCC, code that compilers seldom generate (rare.s), and Go.
var images = []image{
	{name: "coreclr.dll 2.2.2", path: core22 + "coreclr.dll", functions: 4000},
	{name: "clrjit.dll 2.2.2", path: core22 + "clrjit.dll", functions: 1500},
	{name: "mscordaccore.dll 2.2.2", path: core22 + "mscordaccore.dll", functions: 1500},
	{name: "ucrtbase.dll", path: core22 + "ucrtbase.dll", functions: 2000},
	{name: "System.Private.CoreLib.dll 2.2.2", path: core22 + "System.Private.CoreLib.dll", functions: 4000},
	{name: "azmcp.exe (.NET 10.0.9)",
		path: ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe", functions: 4000},
	{name: "libstdc++-6.dll", path: mingw + "libstdc++-6.dll", functions: 2000},
	{name: "functions.c by mingw -O2", make: compile("testdata/functions.c", "-O2"), functions: 2000},
	{name: "functions.c by mingw -O0", make: compile("testdata/functions.c", "-O0"), functions: 2000},
	{name: "rare.s", make: compile("testdata/rare.s", "-O2"), functions: 2000},
	{name: "a Go program", make: buildGo, functions: 2000},
}

// compile makes a DLL.
func compile(source, optimize string) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		out := filepath.Join(dir, filepath.Base(source)+optimize+".dll")
		mingwCompile(t, out, source, optimize, "-shared")
		return out
	}
}

// buildGo makes a Go program for Windows.
func buildGo(t *testing.T, dir string) string {
	out := filepath.Join(dir, "program.exe")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/program")
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	must.Run(t, cmd)
	return out
}

// locate gives an image's file, or skips.
func (im *image) locate(t *testing.T, dir string) string {
	if im.make != nil {
		return im.make(t, dir)
	}
	pattern := im.path
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join("..", "..", pattern)
	}
	found := must.Get(filepath.Glob(pattern))(t)
	if len(found) == 0 {
		t.Skipf("SKIPPED-CHECK: %s is not here: run scripts/fetch.sh", im.name)
	}
	return must.Get(filepath.Abs(found[0]))(t)
}

// TestWineAgrees asks Wine and us the same questions.
func TestWineAgrees(t *testing.T) {
	dir := t.TempDir()
	w := newWine(t, dir)
	var all tally
	ran := 0
	for i := range images {
		im := &images[i]
		t.Run(im.name, func(t *testing.T) {
			f := must.Get(pe.Open(im.locate(t, dir)))(t)
			pts, loops := choose(f, im.functions)
			got := examine(t, w, f, pts)
			got.loops = loops
			t.Log(&got)
			expect.True(t, got.unexplained <= maxShown, "%d points are unexplained", got.unexplained)
			expect.True(t, len(pts) > 0 && got.agreed != 0, "nothing was compared")
			all.add(&got)
			ran++
		})
	}
	t.Logf("all images: %v", &all)
	for i, n := range all.covered {
		if n == 0 && ran == len(images) {
			t.Errorf("no point asks for: %s", covers[i])
		}
	}
}

// examine compares all answers about one image.
func examine(t *testing.T, w *wine, f *pe.File, pts []point) (sum tally) {
	theirs := w.ask(t, f, pts)
	mem := memory.New(memory.Run{Addr: stackBase, Data: stackBytes()})
	u, bias := unwinder(f)
	var again []*question
	for i := range pts {
		ours := step(f, &pts[i], mem)
		sum.cover(f, &pts[i], &ours)
		if d := throughUnwinder(u, bias, &pts[i], &ours, mem); d != "" {
			t.Errorf("%s: %s", place(f, pts[i].rva), d)
		}
		q := newQuestion(f, &pts[i], &ours, &theirs[i], mem)
		if differ(&ours, &theirs[i]) == "" {
			if q.epilog() && !q.right() {
				t.Errorf("%s: an epilog; Wine does not take it for one, nor do we", place(f, pts[i].rva))
			}
			sum.agreed++
			continue
		}
		var elsewhere bool
		if q.class, elsewhere = q.explain(); elsewhere {
			again = append(again, q)
			continue
		}
		sum.settle(t, q)
	}
	askAgain(t, w, f, again)
	for _, q := range again {
		sum.settle(t, q)
	}
	return sum
}

// askAgain asks Wine once more, elsewhere in the same functions. What does not
// confirm our answer explains nothing.
func askAgain(t *testing.T, w *wine, f *pe.File, questions []*question) {
	var pts []point
	var of []*question
	for _, q := range questions {
		if p, ok := q.elsewhere(); ok {
			pts, of = append(pts, p), append(of, q)
		} else {
			q.class = ""
		}
	}
	if len(pts) == 0 {
		return
	}
	for i, a := range w.ask(t, f, pts) {
		if differ(of[i].ours, &a) != "" {
			of[i].class = ""
		}
	}
}

// maxShown is how many unexplained points of an image are shown.
const maxShown = 12

// settle counts a point whose answers differ.
func (s *tally) settle(t *testing.T, q *question) {
	if q.class != "" {
		if s.explained == nil {
			s.explained = map[string]int{}
		}
		s.explained[q.class]++
		return
	}
	if s.unexplained++; s.unexplained <= maxShown {
		t.Errorf("%s: ours against Wine's: %s", place(q.File, q.p.rva), differ(q.ours, q.wine))
	}
}

// step is our answer.
func step(f *pe.File, p *point, mem *memory.Window) (a answer) {
	a.regs = p.regs
	a.regs.RIP = imageBase + uint64(p.rva)
	res, stop := amd64.StepPE(f.AMD64(), unwind.Instruction(uint64(p.rva)), &a.regs, mem)
	a.frame, a.handler, a.stop, a.reason = res.Frame, uint64(res.Handler), stop, res.Reason
	a.part, a.fault = res.Part, res.Machine
	fn, why := f.AMD64().Find(p.rva)
	switch {
	case stop != unwind.StopNone:
		a.how = refused
	case why == peamd64.NoEntry:
		a.how = leaf
	default:
		a.begin = fn.Begin
	}
	return a
}

// imageBase is where our side has the image.
const imageBase = 0x7ff600000000

// unwinder is a walker that knows f alone.
func unwinder(f *pe.File) (*amd64.Unwinder, uint64) {
	m := module.PEFromFile(1, f, f.Name(), imageBase, 0)
	m.CFI = nil // what stepPE asks besides the exception directory is no matter of Wine
	u := amd64.New()
	u.SetTable(module.NewTable(1, []module.Module{m}, []memory.Range{{Start: somebody, End: somebody + 16}}))
	return u, imageBase
}

// somebody is a place in managed code: a word that may be a return address, which
// none of the stack's noise may be.
const somebody = 0x200000000000

// throughUnwinder takes the same step the way a walk does. A walk refuses what
// does not make progress, which noise does not always. And it asks more than
// RtlVirtualUnwind of code without an entry: Windows takes whatever is there for
// a leaf, the int3 behind a function too, where nothing ever runs; a walk wants
// instructions that leave the stack pointer alone up to a return, or else a
// return address on top of the stack. Where it refuses noise for one it must
// take the step as soon as there is one.
func throughUnwinder(u *amd64.Unwinder, bias uint64, p *point, a *answer, mem *memory.Window) string {
	regs, stop := walkStep(u, bias, p, mem)
	if a.how == refused {
		if stop == unwind.StopNone {
			return fmt.Sprintf("StepPE stops with %v, Step does not", a.stop)
		}
		return ""
	}
	want := a.regs
	if stop == unwind.NoInfo && a.how == leaf {
		top := binary.LittleEndian.AppendUint64(nil, somebody+8)
		regs, stop = walkStep(u, bias, p, memory.New(memory.Run{Addr: p.regs.SP(), Data: top}))
		want.RIP = somebody + 8
	}
	if sp := want.SP(); stop == unwind.NoProgress && sp < p.regs.SP() {
		return ""
	}
	if stop != unwind.StopNone {
		return fmt.Sprintf("Step stops with %v, StepPE does not", stop)
	}
	if d := difference(&regs, &want); d != "" {
		return "Step against StepPE: " + d
	}
	return ""
}

// walkStep is one step of a walk.
func walkStep(u *amd64.Unwinder, bias uint64, p *point, mem *memory.Window) (context.AMD64, unwind.Stop) {
	regs := p.regs
	regs.RIP = bias + uint64(p.rva)
	var frame unwind.Frame
	to := context.FromAMD64(regs)
	at := unwind.Interrupted(&to)
	stop := u.Step(&at, mem, nil, &frame)
	return to.AMD64, stop
}

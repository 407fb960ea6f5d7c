package seed

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

// result is the result of a walk, and where it stopped.
type result struct {
	Outcome
	unwind.State
}

// finder holds all data for a walk, so that only the walk is measured.
type finder struct {
	w    *fs.World
	u    unwind.Walker
	s    *managed.Specials
	mem  *memory.Window
	out  []unwind.Frame
	regs context.Registers
	at   unwind.State
	by   Witness
}

func newFinder(w *fs.World, s *managed.Specials) *finder {
	f := &finder{w: w, u: walker.New(w.Arch), s: s, mem: memory.New(w.Capture.Stack),
		out: make([]unwind.Frame, 64)}
	f.u.SetTable(w.Table)
	return f
}

func (f *finder) find(b *unwind.Bounds) result {
	f.regs.Copy(&f.w.Capture.Regs)
	f.at = unwind.Interrupted(&f.regs)
	return result{Find(f.s, f.u, &f.at, f.mem, b, f.out, &f.by), f.at}
}

// moveIP and moveSP change where the thread was interrupted; forget marks a preserved register as unknown.
func moveIP(w *fs.World, by uint64) { r := &w.Capture.Regs; r.SetIP(r.IP() + by) }
func moveSP(w *fs.World, by uint64) { r := &w.Capture.Regs; r.SetSP(r.SP() + by) }
func forget(w *fs.World) {
	w.Capture.Regs.AMD64.Known &^= 1 << context.R15
	w.Capture.Regs.ARM64.Known &^= 1 << 28
}

func isMethod(w *fs.World) func(uint64) bool {
	return func(ip uint64) bool {
		_, hr := w.FunctionFromIP(ip)
		return !hr.Failed()
	}
}

// around returns a range with one function, that of frame i.
func around(w *fs.World, i int) (p managed.Places) {
	lo := w.Truth[i].IP &^ 0xff
	p.Add(memory.Range{Start: 8, End: 16})
	p.Add(memory.Range{Start: lo, End: lo + 0x100})
	return p
}

var (
	native = []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Native}
	framed = []fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Framed}
	onStub = []fs.Kind{fs.Root, fs.Managed, fs.ILStub}
)

// thread is what a case may change.
type thread struct {
	w *fs.World
	b unwind.Bounds
	s managed.Specials
}

var findCases = []struct {
	name   string
	kinds  []fs.Kind
	change func(x *thread)
	want   Verdict
	seed   int // index of the true seed frame, leaf first; -1: none
	frames int // unmanaged frames above it
}{
	{"managed on top", []fs.Kind{fs.Root, fs.Managed}, nil, NotNeeded, 0, 0},
	{"two native frames", native, nil, Found, 2, 2},
	{"two framed frames", framed, nil, Found, 2, 2},
	{"bounds unknown", native, func(x *thread) { x.b = unwind.Bounds{} }, Found, 2, 2},
	{"native to the end", []fs.Kind{fs.Root, fs.Native}, nil, NoManaged, -1, 2},
	{"no unwind data", []fs.Kind{fs.Root, fs.Managed, fs.NoCFI, fs.Native}, nil, Truncated, -1, 2},
	{"over a guess", []fs.Kind{fs.Root, fs.Managed, fs.NoCFI, fs.Native},
		func(x *thread) { x.b.Guess = true }, Unsafe, -1, 2},
	{"nothing copied", native, func(x *thread) { x.w.Capture.Stack.Data = nil }, Truncated, -1, 1},
	{"ip not canonical", native, func(x *thread) { moveIP(x.w, 1<<60) }, Truncated, -1, 1},
	{"a preserved register unknown", native, func(x *thread) { forget(x.w) }, Unsafe, -1, 2},

	{"stack pointer above the stack", native,
		func(x *thread) { x.b.High = x.b.Low + 8 }, ForeignStack, -1, 0},
	{"stack pointer below the stack", native,
		func(x *thread) { x.b.Low = x.w.Truth[0].SP + 8 }, ForeignStack, -1, 0},
	{"managed, on a foreign stack", []fs.Kind{fs.Root, fs.Managed},
		func(x *thread) { moveSP(x.w, 1<<30) }, ForeignStack, -1, 0},
	{"a special on a foreign stack", native,
		func(x *thread) { x.s.Redirect, x.b.High = around(x.w, 0), 8 }, ForeignStack, -1, 0},
	{"stack pointer at the base", []fs.Kind{fs.Root, fs.Managed},
		func(x *thread) { x.b.High = x.w.Truth[0].SP }, ForeignStack, -1, 0},
	{"stack pointer at the limit", []fs.Kind{fs.Root, fs.Managed},
		func(x *thread) { x.b.Low = x.w.Truth[0].SP }, NotNeeded, 0, 0},
	{"misaligned, managed", []fs.Kind{fs.Root, fs.Managed},
		func(x *thread) { moveSP(x.w, 4) }, Unsafe, -1, 0},
	{"misaligned, then right again", framed, func(x *thread) { moveSP(x.w, 4) }, Unsafe, -1, 2},

	{"redirect stub on top", native, func(x *thread) { x.s.Redirect = around(x.w, 0) }, StubOnTop, -1, 1},
	{"redirect stub in managed memory", onStub,
		func(x *thread) { x.s.Redirect = around(x.w, 0) }, StubOnTop, -1, 0},
	{"redirect stub that waits for its return address", native,
		func(x *thread) { x.s.Redirect = around(x.w, 1) }, Unsafe, -1, 2},
	{"dispatcher on top", native, func(x *thread) { x.s.Dispatch = around(x.w, 0) }, StubOnTop, -1, 1},
	{"dispatcher left like a call", native, func(x *thread) { x.s.Dispatch = around(x.w, 1) }, Unsafe, -1, 2},
	{"dispatcher elsewhere", native, func(x *thread) { x.s.Dispatch = around(x.w, 3) }, Found, 2, 2},
	{"IL stub on top, all managed code is a method", onStub, nil, NotNeeded, 0, 0},
	{"IL stub on top", onStub, func(x *thread) { x.s.IsMethod = isMethod(x.w) }, StubOnTop, -1, 0},
	{"misaligned, IL stub on top", onStub,
		func(x *thread) { moveSP(x.w, 4); x.s.IsMethod = isMethod(x.w) }, Unsafe, -1, 0},
	{"method on top", []fs.Kind{fs.Root, fs.Managed},
		func(x *thread) { x.s.IsMethod = isMethod(x.w) }, NotNeeded, 0, 0},
	{"IL stub under native frames", append(onStub[:3:3], fs.Native),
		func(x *thread) { x.s.IsMethod = isMethod(x.w) }, Found, 1, 1},
}

func TestFind(t *testing.T) {
	for _, arch := range context.Arches {
		for _, c := range findCases {
			t.Run(arch.String()+"/"+c.name, func(t *testing.T) {
				x := &thread{w: fs.BuildFor(arch, c.kinds...),
					b: unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}}
				if c.change != nil {
					c.change(x)
				}
				r := newFinder(x.w, &x.s).find(&x.b)
				must.True(t, r.Verdict == c.want && r.Frames == c.frames,
					"verdict %v (stop %v) with %d frames, want %v with %d", r.Verdict, r.Stop, r.Frames,
					c.want, c.frames)
				expect.Equal(t, r.Verdict.Usable(), c.seed >= 0, "usable")
				if c.seed >= 0 {
					checkSeed(t, &r, &x.w.Truth[c.seed])
				}
			})
		}
	}
}

func checkSeed(t *testing.T, r *result, f *fs.Frame) {
	t.Helper()
	expect.True(t, r.Regs.IP() == f.IP && r.Regs.SP() == f.SP && r.Regs.FP() == f.FP && r.Exact == f.Exact,
		"seed ip %#x sp %#x fp %#x, want %+v", r.Regs.IP(), r.Regs.SP(), r.Regs.FP(), f)
	expect.True(t, !r.Trust.Doubtful(), "a seed by %v", r.Trust)
}

// Valid values of an ip in user space and of a stack pointer.
func TestPlausible(t *testing.T) {
	b := &unwind.Bounds{Low: 0x10000, High: 0x20000}
	for _, c := range []struct {
		name       string
		ip, sp     uint64
		x64, arm64 bool
	}{
		{"good", 0x7ff0_0000_0004, 0x10010, true, true},
		{"half aligned", 0x7ff0_0000_0004, 0x10008, true, false},
		{"misaligned", 0x7ff0_0000_0004, 0x10004, false, false},
		{"at the limit", 4, 0x10000, true, true},
		{"below the limit", 4, 0xfff0, false, false},
		{"at the base", 4, 0x20000, false, false},
		{"48 bits", 0x8000_0000_0000, 0x10010, false, true},
		{"49 bits", 0x1_0000_0000_0000, 0x10010, false, false},
		{"ip 0", 0, 0x10010, false, false},
		{"odd ip", 0x7ff0_0000_0003, 0x10010, true, false},
		{"ip on the stack", 0x10100, 0x10010, false, false},
	} {
		expect.Equal(t, rulesOf[context.ArchAMD64].plausible(state{ip: c.ip, sp: c.sp}, b), c.x64,
			"x86-64, %s", c.name)
		expect.Equal(t, rulesOf[context.ArchARM64].plausible(state{ip: c.ip, sp: c.sp}, b), c.arm64,
			"ARM64, %s", c.name)
	}
	expect.True(t, !rulesOf[context.ArchAMD64].plausible(state{ip: 4}, nil),
		"a stack pointer of 0 in unknown bounds")
}

// A refused thread keeps its registers, with and without room for a frame.
func TestRefusedKeepsRegisters(t *testing.T) {
	for _, arch := range context.Arches {
		w := fs.BuildFor(arch, native...)
		f := newFinder(w, &managed.Specials{Redirect: around(w, 0)})
		for _, room := range []int{0, 1, 64} {
			f.out = make([]unwind.Frame, room)
			r := f.find(nil)
			expect.True(t, r.Verdict == StubOnTop && r.Regs.IP() == w.Truth[0].IP &&
				r.Regs.SP() == w.Truth[0].SP && r.Frames == min(room, 1) && r.Exact,
				"%v, room %d: %+v", arch, room, r)
		}
	}
}

func TestVerdictNames(t *testing.T) {
	usable := 0
	for v := range Verdict(VerdictCount) {
		expect.True(t, v.String() != "" && v.String() != "verdict?", "verdict %d has no name", v)
		if v.Usable() {
			usable++
		}
	}
	expect.True(t, usable == 2 && Verdict(VerdictCount).String() == "verdict?" &&
		!Verdict(VerdictCount).Usable(), "%d usable verdicts", usable)
}

func TestFindDoesNotAllocate(t *testing.T) {
	b := unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}
	for _, arch := range context.Arches {
		w := fs.BuildFor(arch, native...)
		for _, s := range []*managed.Specials{nil, {IsMethod: isMethod(w)},
			{Redirect: around(w, 0)}, {Dispatch: around(w, 1)}} {
			f := newFinder(w, s)
			expect.Equal(t, testing.AllocsPerRun(100, func() { f.find(&b) }), 0, "%v: allocations", arch)
		}
	}
}

var deep = []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Native, fs.Native, fs.Native}

func BenchmarkFind(b *testing.B)      { benchmark(b, context.ArchAMD64) }
func BenchmarkFindARM64(b *testing.B) { benchmark(b, context.ArchARM64) }

func benchmark(b *testing.B, arch context.Arch) {
	f := newFinder(fs.BuildFor(arch, deep...), nil)
	bounds := unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}
	b.ReportAllocs()
	for b.Loop() {
		f.find(&bounds)
	}
}

// An ARM64 thread cannot be interrupted between two instructions. Random worlds found this: the tables
// returned the instruction before, and the walk continued.
func TestMisalignedIP(t *testing.T) {
	for by := uint64(1); by < 4; by++ {
		w := fs.BuildFor(context.ArchARM64, native...)
		moveIP(w, by)
		b := unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}
		r := newFinder(w, nil).find(&b)
		expect.True(t, !r.Verdict.Usable(), "ip + %d: %v", by, r.Verdict)
	}
}

// A thread is in the loader if any of its unmanaged frames is, including the leaf. The managed frame does not
// count.
func TestLoading(t *testing.T) {
	for _, arch := range context.Arches {
		for i, want := range []bool{true, true, false} {
			w := fs.BuildFor(arch, native...)
			r := newFinder(w, &managed.Specials{Loader: around(w, i)}).find(&unwind.Bounds{Low: fs.StackLow,
				High: fs.StackHigh})
			expect.True(t, r.Loading == want && r.Verdict == Found,
				"%v, frame %d in the loader: %v, %v", arch, i, r.Loading, r.Verdict)
		}
	}
}

// A walk without room for its frames has not reached the stack's end.
func TestNoRoom(t *testing.T) {
	f := newFinder(fs.BuildFor(context.ArchAMD64, native...), nil)
	f.out = f.out[:1]
	r := f.find(&unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh})
	expect.True(t, r.Verdict == Truncated && r.Stop == unwind.BufferFull, "%v, %v", r.Verdict, r.Stop)
}

// A function with a frame pointer and 48 bytes of stack, without what it allocates later.
var withPointer = map[context.Arch]struct {
	machine      uint16
	entry, codes []byte
}{
	context.ArchAMD64: {pe.MachineAMD64, []byte{0, 0, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0},
		[]byte{1, 8, 3, 5, 8, 3, 5, 0x32, 1, 0x50, 0, 0}}, // push rbp; sub rsp, 32; mov rbp, rsp
	context.ArchARM64: {pe.MachineARM64, []byte{0, 0, 0, 0, 0x80, 0, 0, 0},
		[]byte{0x20, 0, 0x20, 8, 2, 0xe1, 0x81, 0xe4}}, // stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, #32
}

// TestShortFrame checks frames whose size contradicts the prolog, though the frame pointer finds the caller.
func TestShortFrame(t *testing.T) {
	for _, a := range context.Arches {
		for _, c := range []struct {
			ip, size uint64
			want     bool
		}{
			{callAt, 48, true},
			{callAt, 4096, true}, // the function has allocated memory
			{callAt, 40, false},
			{8, 0, true}, // in the prolog
		} {
			f := withPointer[a]
			code := make([]byte, 0x80)
			copy(code[callAt-5:], callOf[a])
			copy(code[8-5:], callOf[a])
			x := newScene(a)
			x.u.SetTable(module.NewTable(1, []module.Module{{
				Start: nativeAt, End: nativeAt + 0x100, Bias: nativeAt,
				PE: pe.FromBlocks(f.machine, f.entry, []pe.Block{{Data: code}, {RVA: 0x80, Data: f.codes}})}},
				[]memory.Range{{Start: methodAt - 0x1000, End: methodAt + 0x1000}}))
			x.frames = []unwind.Frame{{IP: nativeAt + 8, SP: sp - 64, Exact: true}, frameAt(c.ip)}
			x.frames[1].CFA = x.frames[1].SP + c.size
			expect.Equal(t, x.confirmed(), c.want, "%v, %d bytes at %#x", a, c.size, c.ip)
			expect.True(t, x.info.Codes == nil, "%v: the unwind data are kept", a)
		}
	}
}

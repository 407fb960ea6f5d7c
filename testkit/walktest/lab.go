package walktest

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// Lab has what the tests of one architecture need for walks over made-up stacks.
type Lab struct {
	Arch context.Arch
	// New returns a walker that knows these functions and the managed code.
	New func(tb testing.TB, fns ...Fn) Walker
	// Start returns registers with a value of its own in each, all known.
	Start func(ip, sp uint64) context.Registers
	// Each function has its return address in the word below its CFA, except Last and Big.
	Plain Fn // CFA = SP + 16
	Last  Fn // ends the stack
	ByFP  Fn // CFA = FP + 16
	Side  Fn // CFA = DWARF's register 10
	Big   Fn // CFA = SP + 64: saves what a compiler's big function saves
	// BigReturn is where a Big frame has its return address, counted from SP.
	BigReturn uint64
	// FP is the frame pointer's bit of Known. Guessed are the bits known in a guessed caller.
	FP, Guessed uint64
	Hostile     []Hostile // more hostile stacks
	// Real are functions of all kinds of rules, for random stacks. Word is a random word: any number, or an
	// address in the stack or in code.
	Real  []Fn
	Word  func(rnd *rand.Rand) uint64
	Cache Cache
}

// Run runs all tests of walks.
func (l *Lab) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"WalkEnds", l.walkEnds},
		{"FramePointer", l.framePointer},
		{"DoubtStays", l.doubtStays},
		{"Outside", l.outside},
		{"InterruptedNull", l.interruptedNull},
		{"HostileStacks", l.hostileStacks},
		{"RandomStacks", l.randomStacks},
		{"NoAllocations", l.noAllocations},
		{"NoAllocationsRecorded", l.noAllocationsRecorded},
		{"WalkAgreesWithStep", l.walkAgreesWithStep},
		{"CacheWays", l.cacheWays},
		{"SetTableKeepsRules", l.setTableKeepsRules},
	} {
		t.Run(c.name, c.test)
	}
}

// nowhere is an address outside all known code.
const nowhere = 0x4240

// signed is a return address with a signature, as ARM64 makes it.
func signed(ra uint64) uint64 { return 0x57<<48 | ra }

// unsigned returns the address in ra.
func unsigned(ra uint64) uint64 { return ra & (1<<48 - 1) }

func (l *Lab) arm64() bool { return l.Arch == context.ArchARM64 }

// chain lays n frames of Plain. The outermost returns to last.
func chain(n int, last uint64) *Stack {
	s := NewStack()
	for i := range n {
		ra := At(0)
		if i == n-1 {
			ra = last
		}
		s.Set(SP0+16*uint64(i)+8, ra)
	}
	return s
}

func (l *Lab) plain(tb testing.TB) Walker { return l.New(tb, l.Plain, l.Last) }

// walkEnds: however a walk ends, the registers are those of the frame at which it ended. Recursion,
// with the same return address repeatedly, does not end a walk.
func (l *Lab) walkEnds(t *testing.T) {
	type row struct {
		name   string
		last   uint64
		out    int
		bounds unwind.Bounds
		n      int
		stop   unwind.Stop
		ip     uint64
		sp     uint64
	}
	rows := []row{
		{"managed", JitIP, 64, unwind.Bounds{}, 40, unwind.Managed, JitIP, SP0 + 640},
		{"end of stack", At(1), 64, unwind.Bounds{}, 41, unwind.EndOfStack, At(1), SP0 + 640},
		{"zero return address", 0, 64, unwind.Bounds{}, 40, unwind.NullReturn, At(0), SP0 + 624},
		{"zero return address at the high end", 0, 64, unwind.Bounds{Low: StackLow, High: SP0 + 640}, 40,
			unwind.EndOfStack, At(0), SP0 + 624},
		{"zero return address a page below it", 0, 64, unwind.Bounds{Low: StackLow, High: SP0 + 624 + 4096},
			40, unwind.EndOfStack, At(0), SP0 + 624},
		{"zero return address farther below it", 0, 64, unwind.Bounds{Low: StackLow, High: SP0 + 624 + 4104},
			40, unwind.NullReturn, At(0), SP0 + 624},
		{"nothing known there", nowhere, 64, unwind.Bounds{}, 41, unwind.NoInfo, nowhere, SP0 + 640},
		{"a module without unwind data there", At(2), 64, unwind.Bounds{}, 41,
			unwind.NoInfo, At(2), SP0 + 640},
		{"buffer full", JitIP, 10, unwind.Bounds{}, 10, unwind.BufferFull, At(0), SP0 + 160},
		{"no buffer", JitIP, 0, unwind.Bounds{}, 0, unwind.BufferFull, At(0), SP0},
		{"limit", JitIP, 64, unwind.Bounds{MaxSteps: 7}, 7, unwind.Limit, At(0), SP0 + 112},
		{"out of the stack", JitIP, 64, unwind.Bounds{Low: StackLow, High: SP0 + 100}, 7,
			unwind.OutOfStack, At(0), SP0 + 96},
	}
	if l.arm64() {
		rows = append(rows, row{"signed managed", signed(JitIP), 64, unwind.Bounds{}, 40,
			unwind.Managed, JitIP, SP0 + 640})
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			u, mem, r, out := l.plain(t), chain(40, c.last).Window(), l.Start(At(0), SP0),
				make([]unwind.Frame, c.out)
			s := unwind.Interrupted(&r)
			got := u.Walk(&s, mem, &c.bounds, out)
			must.True(t, got.N == c.n && got.Stop == c.stop && r.IP() == c.ip && r.SP() == c.sp &&
				s.Exact == (got.N == 0),
				"%+v, exact %v, at %#x/%#x; want %d, %v, %#x/%#x", got, s.Exact, r.IP(), r.SP(),
				c.n, c.stop, c.ip, c.sp)
			for i, f := range out[:got.N] {
				trust := unwind.TrustCFI
				if i == 0 {
					trust = unwind.TrustContext
				} else if f.Module < 0 {
					trust = unwind.TrustOutside
				}
				expect.True(t, f.SP == SP0+16*uint64(i) && f.Trust == trust && f.Exact == (i == 0),
					"frame %d: %+v", i, f)
			}
		})
	}
}

// framePointer: the frame pointer is followed only if guesses are allowed and all checks of it succeed. The
// frame that it finds is doubtful.
func (l *Lab) framePointer(t *testing.T) {
	const fp = SP0 + 0x40
	guess := unwind.Bounds{Guess: true}
	type row struct {
		name   string
		fp, ra uint64
		known  bool
		bounds unwind.Bounds
		stop   unwind.Stop
	}
	rows := []row{
		{"good", fp, At(0), true, guess, unwind.StopNone},
		{"at the stack pointer", SP0, At(0), true, guess, unwind.StopNone},
		{"managed return address", fp, JitIP, true, guess, unwind.StopNone},
		{"not allowed", fp, At(0), true, unwind.Bounds{}, unwind.NoInfo},
		{"unknown", fp, At(0), false, guess, unwind.NoInfo},
		{"not aligned", fp + 4, At(0), true, guess, unwind.NoInfo},
		{"below the stack pointer", SP0 - 16, At(0), true, guess, unwind.NoInfo},
		{"outside the bounds", fp, At(0), true,
			unwind.Bounds{Low: StackLow, High: fp + 8, Guess: true}, unwind.NoInfo},
		{"outside the window", StackLow + StackSize - 8, 0, true, guess, unwind.NoInfo},
		{"wrapping", ^uint64(7), 0, true, guess, unwind.NoInfo},
		{"return address is no code", fp, 0x1234, true, guess, unwind.NoInfo},
		{"return address 0", fp, 0, true, guess, unwind.NoInfo},
	}
	if l.arm64() {
		rows = append(rows, row{"signed return address", fp, signed(At(0)), true, guess, unwind.StopNone},
			row{"return address between instructions", fp, At(0) + 2, true, guess, unwind.NoInfo})
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			u, stack, r := l.plain(t), NewStack(), l.Start(nowhere, SP0)
			r.SetFP(c.fp)
			if !c.known {
				r.SetKnown(r.Known() &^ l.FP)
			}
			if c.fp-StackLow < StackSize-8 {
				stack.Set(c.fp+8, c.ra)
			}
			before, s, f := r, unwind.Interrupted(&r), unwind.Frame{}
			must.Equal(t, u.Step(&s, stack.Window(), &c.bounds, &f), c.stop, "stop")
			if c.stop != unwind.StopNone {
				expect.Equal(t, r, before, "a failed step changed the registers")
				return
			}
			expect.True(t, r.IP() == unsigned(c.ra) && r.SP() == c.fp+16 && r.FP() == stack.Word(c.fp) &&
				r.Known() == l.Guessed && (f.CFA == 0) == l.arm64(),
				"caller %#x/%#x fp %#x known %#x CFA %#x", r.IP(), r.SP(), r.FP(), r.Known(), f.CFA)
			expect.Equal(t, s.Trust, unwind.TrustFramePointer, "trust")
		})
	}
}

// doubtStays: the callers of a guessed frame are doubtful, too.
func (l *Lab) doubtStays(t *testing.T) {
	u, stack, r := l.plain(t), NewStack(), l.Start(nowhere, SP0)
	r.SetFP(SP0 + 16)
	stack.Set(SP0+24, At(0))
	stack.Set(SP0+40, At(1))
	var out [8]unwind.Frame
	s := unwind.Interrupted(&r)
	got := u.Walk(&s, stack.Window(), &unwind.Bounds{Guess: true}, out[:])
	expect.True(t, got.N == 3 && got.Stop == unwind.EndOfStack && out[1].Trust.Doubtful() &&
		out[2].Trust.Doubtful(), "%+v, %v %v", got, out[1].Trust, out[2].Trust)
}

// outside: a frame outside all known code is doubtful, and so are all frames reached from it: after single
// steps and walks, and if the buffer is full there.
func (l *Lab) outside(t *testing.T) {
	u, mem := l.plain(t), chain(2, nowhere).Window()
	r := l.Start(At(0), SP0)
	stepped := unwind.Interrupted(&r)
	for range 2 {
		var f unwind.Frame
		stop := u.Step(&stepped, mem, nil, &f)
		must.True(t, stop == unwind.StopNone && !f.Trust.Doubtful(), "%v, %+v", stop, f)
	}
	expect.Equal(t, stepped.Trust, unwind.TrustOutside, "stepped to by")
	for _, size := range []int{2, 8} {
		r, out := l.Start(At(0), SP0), make([]unwind.Frame, size)
		walked := unwind.Interrupted(&r)
		u.Walk(&walked, mem, nil, out)
		expect.True(t, walked.Trust == unwind.TrustOutside && out[1].Trust == unwind.TrustCFI,
			"room for %d: walked to by %v from %v", size, walked.Trust, out[1].Trust)
	}
}

// interruptedNull: a return address of 0 near the stack's end ends the stack. The row of an interrupted
// instruction may be wrong, so a 0 from such a row does not end the stack.
func (l *Lab) interruptedNull(t *testing.T) {
	for _, exact := range []bool{false, true} {
		want := unwind.EndOfStack
		if exact {
			want = unwind.NullReturn
		}
		u, mem, b := l.plain(t), chain(1, 0).Window(), unwind.Bounds{Low: StackLow, High: SP0 + 640}
		var f unwind.Frame
		r := l.Start(At(0), SP0)
		stop := u.Step(&unwind.State{Regs: &r, Exact: exact, Trust: unwind.TrustContext}, mem, &b, &f)
		expect.True(t, stop == want, "exact %v: a step ends by %v, want %v", exact, stop, want)
		r = l.Start(At(0), SP0)
		got := u.Walk(&unwind.State{Regs: &r, Exact: exact, Trust: unwind.TrustContext}, mem, &b,
			make([]unwind.Frame, 4))
		expect.True(t, got.Stop == want && got.N == 1, "exact %v: a walk ends %+v, want %v", exact, got, want)
	}
}

// Hostile is a stack made to trap a walker.
type Hostile struct {
	Name  string
	Fns   []Fn
	IP    uint64
	FP    uint64
	Fill  func(s *Stack)
	Mem   *memory.Window // nil: the stack's
	Guess bool
	N     int // frames; 0: any number
	Stop  unwind.Stop
}

// Ring returns a Fill: the frame records at SP0 and SP0 + 32 point to each other and return to ra.
func Ring(ra uint64) func(s *Stack) {
	return func(s *Stack) {
		s.Set(SP0, SP0+32)
		s.Set(SP0+8, ra)
		s.Set(SP0+32, SP0)
		s.Set(SP0+40, ra)
	}
}

// hostileStacks: walks over hostile stacks end in bounded time with a reason.
func (l *Lab) hostileStacks(t *testing.T) {
	for _, c := range append([]Hostile{
		{Name: "frame pointer to itself", Fns: []Fn{l.ByFP}, IP: At(0), FP: SP0,
			Fill: func(s *Stack) { s.Set(SP0, SP0); s.Set(SP0+8, At(0)) }, Stop: unwind.NoProgress},
		{Name: "frame pointers in a ring", Fns: []Fn{l.ByFP}, IP: At(0), FP: SP0, Fill: Ring(At(0)),
			Stop: unwind.NoProgress},
		{Name: "CFA that does not grow", Fns: []Fn{l.Side}, IP: At(0), Stop: unwind.NoProgress},
		{Name: "empty window", Fns: []Fn{l.Plain}, IP: At(0), Mem: memory.New(), Stop: unwind.Unreadable},
		{Name: "zero window", Fns: []Fn{l.Plain}, IP: At(0), Mem: &memory.Window{}, Stop: unwind.Unreadable},
		{Name: "instruction pointer 0", Fns: []Fn{{}}, Stop: unwind.NoInfo},
		{Name: "highest instruction pointer", Fns: []Fn{{}}, IP: ^uint64(0), Guess: true,
			Stop: unwind.NoInfo},
	}, l.Hostile...) {
		t.Run(c.Name, func(t *testing.T) {
			u, stack, r := l.New(t, c.Fns...), NewStack(), l.Start(c.IP, SP0)
			r.AMD64.GPR[context.R10], r.AMD64.GPR[context.RAX], r.ARM64.X[10] = SP0, At(0), SP0
			r.SetFP(c.FP)
			stack.Set(SP0-8, At(0))
			if c.Fill != nil {
				c.Fill(stack)
			}
			mem := stack.Window()
			if c.Mem != nil {
				mem = c.Mem
			}
			out, s := make([]unwind.Frame, 5000), unwind.Interrupted(&r)
			got := u.Walk(&s, mem, &unwind.Bounds{Guess: c.Guess}, out)
			if got.Stop != c.Stop || got.N > unwind.DefaultMaxSteps || c.N != 0 && got.N != c.N {
				t.Errorf("%+v, want %v", got, c.Stop)
			}
			expect.Equal(t, out[0].Module, int32(u.Table().Find(c.IP)), "module")
		})
	}
}

package walktest

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Leaving tests walks from one stack to another. The walker switches stacks by the unwind data
// of a function that keeps its caller's stack pointer in the frame pointer.
type Leaving struct {
	New func() Walker
	// Table has the functions below, each with a call before At, and none elsewhere.
	Table *module.Table
	At    func(fn int) uint64
	// Registers are those of a frame, all known.
	Registers func(ip, sp, fp uint64) context.Registers
	Managed   uint64 // an address of managed code
}

// The functions. All have their return address in the word below the caller's stack pointer.
// All except Plain have their caller's frame pointer in the word below that.
const (
	Plain     = iota // CFA = SP + 16
	Kept             // CFA = FP + 16
	Expressed        // the same by an expression
	Rare             // CFA = FP + 16, in a row that has another register by an expression
	// CFA = SP + 16, which is not the caller's stack pointer: that is FP + 16, by an expression
	Moved
	FromSP     // CFA = SP - Apart
	leavingFns // so many there are
)

// How many stacks a walk may leave is promised.
const mostLeft = 32

// Apart is how far the higher stack lies above the lower.
const Apart = 0x100_0000

const (
	lower, higher = 0x7000_0000, lower + Apart
	leavingSize   = 0x2000
	lowAt, highAt = lower + 0x800, higher + 0x800 // where frames are
)

// LeavingFns is how many functions there are.
const LeavingFns = leavingFns

// Run walks what is laid out, by Walk and by steps.
func (l *Leaving) Run(t *testing.T) {
	own := func(at uint64) *unwind.Bounds {
		return &unwind.Bounds{Low: at &^ 0xfff, High: at&^0xfff + leavingSize}
	}
	none, both := &unwind.Bounds{}, &unwind.Bounds{Low: lower, High: higher + leavingSize}
	two, one := l.memory(false), l.memory(true)
	fromSP := [2]memory.Run{two[0], {Addr: highAt, Data: two[1].Data[highAt-higher:]}}
	doubt := unwind.TrustFramePointer
	for _, c := range []struct {
		name     string
		from, to uint64 // stack pointers
		mem      [2]memory.Run
		b        *unwind.Bounds
		off      uint64 // of the return address from behind a call
		trust    unwind.Trust
		stop     unwind.Stop // StopNone: the walk goes over
		empty    bool        // the stack that it goes over to: that ends it there
	}{
		{name: "down", from: highAt, to: lowAt, mem: two, b: none},
		{name: "down to the thread's stack", from: highAt, to: lowAt, mem: two, b: own(lowAt)},
		{name: "down from the thread's stack", from: highAt, to: lowAt, mem: two, b: own(highAt)},
		{name: "down, of one piece of memory", from: highAt, to: lowAt, mem: one,
			b: none, stop: unwind.NoProgress},
		{name: "down to the thread's stack, of one piece of memory", from: highAt,
			to: lowAt, mem: one, b: own(lowAt)},
		{name: "down on the thread's stack", from: highAt, to: lowAt, mem: two,
			b: both, stop: unwind.NoProgress},
		{name: "down, below the stack pointer", from: highAt, to: highAt - 64, mem: two,
			b: none, stop: unwind.NoProgress},
		{name: "down, beside the thread's stack", from: highAt, to: lowAt, mem: two,
			b: &unwind.Bounds{Low: 0x1000, High: 0x2000}},
		{name: "down, no call there", from: highAt, to: lowAt, mem: two, b: none,
			off: 4, stop: unwind.NoProgress},
		{name: "down, by a guess", from: highAt, to: lowAt, mem: two, b: none,
			trust: doubt, stop: unwind.NoProgress},
		{name: "down, no memory there", from: highAt, to: lowAt, mem: [2]memory.Run{two[1]},
			b: none, stop: unwind.NoProgress},
		{name: "down, no memory here", from: highAt, to: lowAt, mem: [2]memory.Run{two[0]},
			b: none, stop: unwind.NoProgress},
		{name: "down, memory from the stack pointer on", from: highAt, to: lowAt, mem: fromSP, b: none},
		{name: "down from a stack's first word", from: higher + leavingSize, to: lowAt, mem: two, b: none},
		{name: "down from the thread's first word, of one piece of memory", from: higher + leavingSize,
			to: lowAt, mem: one, b: own(highAt)},
		{name: "down to a stack's first word", from: highAt, to: lower + leavingSize,
			mem: two, b: none, empty: true},
		{name: "up", from: lowAt, to: highAt, mem: two, b: none},
		{name: "up from the thread's stack", from: lowAt, to: highAt, mem: two, b: own(lowAt)},
		{name: "up from the thread's stack, no call there", from: lowAt, to: highAt, mem: two, b: own(lowAt),
			off: 4, stop: unwind.OutOfStack},
		{name: "up from the thread's stack, by a guess", from: lowAt, to: highAt, mem: two, b: own(lowAt),
			trust: doubt, stop: unwind.OutOfStack},
		{name: "up from the thread's stack, no memory there", from: lowAt, to: highAt,
			mem: [2]memory.Run{two[0]}, b: own(lowAt), stop: unwind.OutOfStack},
	} {
		for fn, rule := range []string{Kept: "kept", Expressed: "expressed", Rare: "rare", Moved: "moved"} {
			if rule == "" {
				continue
			}
			t.Run(c.name+"/"+rule, func(t *testing.T) {
				l.lay(c.mem, c.to, l.At(Plain)+c.off)
				r := l.Registers(l.At(fn), c.from, c.to-16)
				s := unwind.State{Regs: &r, Exact: true, Trust: max(c.trust, unwind.TrustContext)}
				mem := memory.New(c.mem[:]...)
				end := l.walk(t, &s, mem, c.b)
				want, last, sp := c.stop, unwind.Managed, c.to+16
				if _, there := mem.Word(c.to - 8); !there && fn != Kept {
					want = unwind.Unreadable // its return address is read first
				}
				if c.empty {
					last, sp = unwind.Unreadable, c.to
				}
				switch {
				case want != unwind.StopNone &&
					(end.stop != want || end.n != 1 || end.Left != 0 || end.Regs.SP() != c.from):
					t.Errorf("%d frames, %v, at %#x, %d stacks left; want %v", end.n, end.stop,
						end.Regs.SP(), end.Left, want)
				case want == unwind.StopNone &&
					(end.stop != last || end.n != 2 || end.Regs.SP() != sp || end.Trust != unwind.TrustCFI):
					t.Errorf("%d frames, %v, at %#x by %v", end.n, end.stop, end.Regs.SP(), end.Trust)
				}
			})
		}
	}
	for name, b := range map[string]*unwind.Bounds{"down": none, "up": own(lowAt)} {
		t.Run("from SP/"+name, func(t *testing.T) { l.fromSP(t, name == "up", b) })
	}
	for _, fn := range []int{Kept, Expressed, Rare, Moved} {
		l.ring(t, fn, two)
	}
}

// fromSP: nothing keeps the stack pointer of another stack where a rule counts from SP.
func (l *Leaving) fromSP(t *testing.T, up bool, b *unwind.Bounds) {
	mem, fn, from, to, stop := l.memory(up), FromSP, uint64(highAt), uint64(lowAt), unwind.NoProgress
	if up {
		fn, from, to, stop = Plain, b.High-8, b.High+8, unwind.OutOfStack
	}
	l.lay(mem, to, l.At(Plain))
	r := l.Registers(l.At(fn), from, 0)
	s := unwind.Interrupted(&r)
	if end := l.walk(t, &s, memory.New(mem[:]...), b); end.stop != stop || end.n != 1 {
		t.Errorf("%d frames, %v", end.n, end.stop)
	}
}

// ring: two stacks lead to each other for ever. Up needs no leave where nothing bounds
// the stack.
func (l *Leaving) ring(t *testing.T, fn int, mem [2]memory.Run) {
	put(mem, lowAt-16, highAt-16)
	put(mem, lowAt-8, l.At(fn))
	put(mem, highAt-16, lowAt-16)
	put(mem, highAt-8, l.At(fn))
	for _, c := range []struct {
		name string
		b    unwind.Bounds
		n    int
	}{
		{"no bounds", unwind.Bounds{}, 2*mostLeft + 1},
		{"of one of them", unwind.Bounds{Low: lower, High: lower + leavingSize}, mostLeft + 1},
	} {
		r := l.Registers(l.At(fn), highAt, lowAt-16)
		s := unwind.Interrupted(&r)
		end := l.walk(t, &s, memory.New(mem[:]...), &c.b)
		if end.n != c.n || end.Left != mostLeft || end.stop != unwind.NoProgress {
			t.Errorf("ring, %s: %d frames, %v, %d stacks left", c.name, end.n, end.stop, end.Left)
		}
	}
}

// memory is that of the two stacks, or of one with both in it.
func (*Leaving) memory(whole bool) (runs [2]memory.Run) {
	if whole {
		return [2]memory.Run{{Addr: lower, Data: make([]byte, Apart+leavingSize)}}
	}
	return [2]memory.Run{{Addr: lower, Data: make([]byte, leavingSize)},
		{Addr: higher, Data: make([]byte, leavingSize)}}
}

// lay writes the end of a frame whose CFA depends on its frame pointer. ra is its return
// address. Above it is the frame of a Plain function, which managed code has called.
func (l *Leaving) lay(mem [2]memory.Run, cfa, ra uint64) {
	put(mem, cfa-16, 0x5555)
	put(mem, cfa-8, ra)
	put(mem, cfa+8, l.Managed)
}

func put(mem [2]memory.Run, at, v uint64) {
	for _, r := range mem {
		if off := at - r.Addr; off < uint64(len(r.Data)) {
			binary.LittleEndian.PutUint64(r.Data[off:], v)
		}
	}
}

// ending is where a walk has ended.
type ending struct {
	unwind.State
	n    int
	stop unwind.Stop
}

// walk walks by steps, cold and warm, and demands that all agree.
func (l *Leaving) walk(t *testing.T, from *unwind.State, mem *memory.Window, b *unwind.Bounds) ending {
	t.Helper()
	u, f := l.New(), Fused{}
	u.SetTable(l.Table)
	const room = 4 * mostLeft
	n, stop := f.check(t, u, from, mem, b, room)
	out := make([]unwind.Frame, room)
	r := *from.Regs
	s := *from
	s.Regs = &r
	if a := testing.AllocsPerRun(5, func() {
		*s.Regs, s.Exact, s.Trust, s.Left = *from.Regs, from.Exact, from.Trust, from.Left
		u.Walk(&s, mem, b, out)
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
	return ending{s, n, stop}
}

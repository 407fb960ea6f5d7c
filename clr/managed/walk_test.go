package managed

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// methods is a Source of x86-64 methods with random frames, 0x100 bytes each.
type methods struct {
	unix   bool
	info   [][]byte // UNWIND_INFO
	frames []int    // words from the stack pointer behind a call to the return address
	first  bool     // some calls return to the first byte of a method, which has pushed nothing there
}

const methodsAt = 0x7d00_0000_0000

func (m *methods) Code(at unwind.Address, c *Code) unwind.Stop {
	i := (at.IP - methodsAt) >> 8
	if i >= uint64(len(m.info)) {
		*c = Code{Kind: Uncharted}
		return unwind.StopNone
	}
	begin := uint32(i) << 8
	*c = Code{Kind: Method, Base: methodsAt, Keep: true, Function: clr.FunctionID(7000 + i),
		Entry: peamd64.RuntimeFunction{Begin: begin, End: begin + 0x100, Unwind: 0x100000 + begin}}
	return unwind.StopNone
}

func (m *methods) ReadAt(b []byte, addr uint64) bool {
	i, off := (addr-methodsAt-0x100000)>>8, int(addr&0xff)
	if i >= uint64(len(m.info)) || off+len(b) > len(m.info[i]) {
		return false
	}
	copy(b, m.info[i][off:])
	return true
}

func (m *methods) Arch() context.Arch { return context.ArchAMD64 }
func (m *methods) Unix() bool         { return m.unix }

// newMethods makes n methods: each pushes some registers and makes room for at most 15 words.
func newMethods(rnd *rand.Rand, n int, unix bool) *methods {
	saved := []byte{context.RBX, context.RBP, context.R12, context.R13, context.R14, context.R15}
	if !unix {
		saved = append(saved, context.RSI, context.RDI)
	}
	m := &methods{unix: unix}
	for range n {
		room := byte(rnd.IntN(16))
		info, words := []byte{1, 0, 0, 0}, int(room)
		if room > 0 {
			info = append(info, 90, (room-1)<<4|byte(peamd64.UWOP_ALLOC_SMALL))
		}
		rnd.Shuffle(len(saved), func(i, k int) { saved[i], saved[k] = saved[k], saved[i] })
		pushes := rnd.IntN(len(saved) + 1)
		for i, reg := range saved[:pushes] {
			info = append(info, byte(40-i), reg<<4|byte(peamd64.UWOP_PUSH_NONVOL))
		}
		info[1], info[2] = 100, byte(len(info)-4)/2
		info = append(info, 0, 0) // an even number of codes
		m.info, m.frames = append(m.info, info), append(m.frames, words+pushes)
	}
	return m
}

// call returns the words of a stack whose frames are of random methods, leaf first, and the leaf's address.
func (m *methods) call(rnd *rand.Rand, frames int) (ip uint64, data []byte) {
	n, order := 0, rnd.Perm(len(m.info))
	next := func() (words int, ra uint64) {
		if n++; n%len(order) == 0 {
			order = rnd.Perm(len(order))
		}
		i := order[n%len(order)]
		if ra = methodsAt + uint64(i)<<8; m.first && rnd.IntN(16) == 0 {
			return 0, ra
		}
		return m.frames[i], ra + 0x80 + uint64(rnd.IntN(2))
	}
	words, ip := next()
	for range frames {
		for range words {
			data = binary.LittleEndian.AppendUint64(data, rnd.Uint64())
		}
		var ra uint64
		words, ra = next()
		data = binary.LittleEndian.AppendUint64(data, ra)
	}
	return ip, data
}

// A Walk makes the steps that Step makes, and stops where it has no rule or a step fails.
func TestWalk(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	walked, single := 0, 0
	for round := range 400 {
		unix := round%2 == 0
		m := newMethods(rnd, 24, unix)
		m.first = true
		walks, steps := New(m), New(m)
		for range 8 {
			ip, data := m.call(rnd, 1+rnd.IntN(200))
			mem := memory.New(memory.Run{Addr: stackAt, Data: data[:len(data)-8*rnd.IntN(2)]})
			if rnd.IntN(4) == 0 { // a second copy of a part that the hot run lacks
				cut := len(data) / 16 * 8
				mem = memory.New(memory.Run{Addr: stackAt, Data: data[:cut]},
					memory.Run{Addr: stackAt + uint64(cut), Data: data[cut:]})
			}
			b := &unwind.Bounds{}
			if rnd.IntN(2) == 0 {
				b.High = stackAt - 8 + uint64(rnd.IntN(len(data)+24))
			}
			got, want := at(ip, rnd.IntN(4) == 0), at(ip, false)
			if got.Regs.AMD64.Known &^= 1 << rnd.IntN(26) & (rnd.Uint32() | rnd.Uint32()); rnd.IntN(4) == 0 {
				got.Trust = unwind.TrustCode
			}
			got.Regs.AMD64.Known |= 1 << context.RSP
			regs := *got.Regs
			*want = *got
			want.Regs = &regs
			for {
				var out [64]unwind.Frame
				left := b.High != 0 && got.Regs.SP() > b.High
				n, ids := walks.Walk(got, mem, b, out[:1+rnd.IntN(len(out))])
				must.True(t, n == 0 || !left, "%d steps from %+v", n, got)
				walked += n
				for i := range out[:n] {
					must.True(t, out[i].IP&0xff != 0 || out[i].Exact, "the first byte of a method: the name may be another's")
					f, g := &out[i], unwind.Frame{}
					must.Equal(t, slow(steps).Step(want, mem, b, &g), unwind.StopNone)
					id := ids[f.Module]
					f.Module, f.Kind = -1, unwind.KindManaged
					must.Equal(t, *f, g)
					must.Equal(t, id, clr.FunctionID(7000+(f.IP-methodsAt)>>8))
				}
				same(t, got, want)
				var f, g unwind.Frame
				stop := walks.Step(got, mem, b, &f)
				must.Equal(t, slow(steps).Step(want, mem, b, &g), stop)
				must.Equal(t, f, g)
				same(t, got, want)
				if stop != unwind.StopNone || b.High != 0 && got.Regs.SP() > b.High {
					break
				}
				single++
			}
		}
	}
	expect.Figures(t, walked > single, "%d steps by Walk, %d by Step", walked, single)
}

// slow makes t step by a function's unwind data.
func slow(t *Tables) *Tables {
	t.Forget()
	return t
}

// same compares the states of two walks.
func same(t *testing.T, got, want *unwind.State) {
	t.Helper()
	a, b := &got.Regs.AMD64, &want.Regs.AMD64
	must.Equal(t, a.Known, b.Known)
	for i := range a.GPR {
		if a.Known>>i&1 != 0 {
			must.Equal(t, a.GPR[i], b.GPR[i], "register %d", i)
		}
	}
	must.Equal(t, a.RIP, b.RIP)
	must.True(t, got.Exact == want.Exact && got.Trust == want.Trust, "%+v, want %+v", got, want)
}

// Steps over frames of different methods whose rules are known.
func BenchmarkWalk(b *testing.B) {
	const frames = 32
	rnd := rand.New(rand.NewPCG(7, 2))
	m := newMethods(rnd, frames, true)
	ip, data := m.call(rnd, frames)
	mem, tables, first := memory.New(memory.Run{Addr: stackAt, Data: data}), New(m), at(ip, false)
	var out [frames]unwind.Frame
	var bounds unwind.Bounds
	walk := func() (n int) {
		regs, s := *first.Regs, *first
		s.Regs = &regs
		for n < frames {
			k, _ := tables.Walk(&s, mem, &bounds, out[n:])
			if n += k; k == 0 {
				must.Equal(b, tables.Step(&s, mem, &bounds, &out[n]), unwind.StopNone)
				n++
			}
		}
		return n
	}
	walk()
	b.ReportAllocs()
	for b.Loop() {
		walk()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*frames), "ns/frame")
}

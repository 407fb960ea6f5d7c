package fuzz

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/sim/worlds"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// Targets over whole worlds: the bytes choose world, schedule and damage, the
// simulator knows the truth. What they must show is in every world: no fault but
// one that was not foreseen, no lost or invented frame, every suspension
// taken back.

// fuzzKits is how many kits the inputs choose from: what is new is to be found in
// worlds, not in code.
const fuzzKits = 4

// shape reads a world's kind from one byte.
func shape(b byte) func(s *sim.Setup) {
	return func(s *sim.Setup) {
		vs := vm.Variants()
		s.Variant, s.Arch = vs[int(b)%len(vs)], image.Arch(b/8&1)
		s.Run, s.Fine = 1+uint64(b>>4)%fuzzKits, b>>7 != 0
	}
}

// schedule takes choices from bytes, then continues without preemption; where that
// would never end, by random ones.
type schedule struct {
	data []byte
	then sched.Chooser
}

func (s *schedule) Choose(n int) int {
	if len(s.data) == 0 {
		return s.then.Choose(n)
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

// FuzzProtocol: whatever the order of steps, the product's samplers leave nothing
// suspended, never deadlock, and merge true stacks.
func FuzzProtocol(f *testing.F) {
	for b := range byte(20) {
		f.Add(uint64(b), b*13, []byte{})
		f.Add(uint64(b)+100, b*13, []byte("the first choices of a schedule, one a byte"))
	}
	f.Fuzz(func(t *testing.T, run uint64, kind byte, choices []byte) {
		r := worlds.Run(run, worlds.Options{Setup: shape(kind),
			Chooser: &schedule{choices, sched.Random(run)}})
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	})
}

// edit is one change of a captured context, eight bytes of input.
const edit = 8

// registers changes registers and stack by edits: a register or word, and what
// happens to it. It reports whether the stack was changed.
func registers(data []byte, st *machine.State, stack []byte) (touched bool) {
	for ; len(data) >= edit; data = data[edit:] {
		v := uint64(int64(int32(binary.LittleEndian.Uint32(data[4:]))))
		var word uint64
		at := -1
		if data[0]&0x80 != 0 {
			if len(stack) < 8 {
				continue
			}
			at = int(binary.LittleEndian.Uint16(data[1:])) % (len(stack) / 8) * 8
			word, touched = binary.LittleEndian.Uint64(stack[at:]), true
		} else if r := data[0] & 0x3f; r < 32 {
			word = st.R[r]
		} else {
			word = st.PC
		}
		switch data[3] % 4 {
		case 0:
			word += v
		case 1:
			word ^= 1 << (v & 63)
		case 2:
			word = v
		default:
			word = st.R[v&31]
		}
		switch r := data[0] & 0x3f; {
		case at >= 0:
			binary.LittleEndian.PutUint64(stack[at:], word)
		case r < 32:
			st.R[r] = word
		default:
			st.PC = word
		}
	}
	return touched
}

// FuzzSeed damages a context as the input says, walks it, and passes the seed to the
// CLR if the verdict allows it. No seed kills the CLR. With the runtime's tables, no seed
// makes it report a false frame, unless the seed is true of another state of the
// thread. Without them, no check can recognize some false return addresses in a
// damaged copy of the stack.
func FuzzSeed(f *testing.F) {
	for b := range byte(12) {
		f.Add(uint64(b), b*13, []byte{})
		f.Add(uint64(b), b*13, []byte{0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})         // ip - 1
		f.Add(uint64(b), b*13, []byte{4, 0, 0, 0, 8, 0, 0, 0, 31, 0, 0, 0, 16, 0, 0}) // sp
		f.Add(uint64(b), b*13, []byte{5, 0, 0, 3, 4, 0, 0, 0, 29, 0, 0, 3, 31, 0, 0, 0})
		f.Add(uint64(b), b*13, []byte{0x80, 1, 0, 1, 3, 0, 0, 0, 0x80, 5, 0, 2, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, run uint64, kind byte, data []byte) {
		if len(data) > 64*edit {
			return
		}
		k := worlds.Kind{Name: "by the input", Change: func(st *machine.State, stack []byte) bool {
			registers(data, st, stack)
			return true
		}}
		d := &worlds.Damage{Kind: &k}
		r := worlds.Run(run, worlds.Options{Setup: shape(kind), Damage: d})
		expect.Equal(t, r.Err(), nil)
		if d.Sorts.Wrong != 0 { // TestBadSeeds allows a few if the context is old; no input makes one
			t.Errorf("world %d: %d seeds show a frame that is not there", run, d.Sorts.Wrong)
		}
	})
}

// mergers are large and remember; one of each kind serves all inputs, as a
// sampler's does.
var mergers struct {
	sync.Mutex
	host *sim.Host
	x64  *merge.Merger
	a64  *merge.Merger
}

type functions struct{}

func (functions) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	return mergers.host.FunctionFromIP(ip)
}

func mergerOf(w *sim.World) *merge.Merger {
	m := &mergers
	if m.x64 == nil {
		m.x64, m.a64 = merge.New(managed.NewWalker(context.ArchAMD64), functions{}),
			merge.New(managed.NewWalker(context.ArchARM64), functions{})
	}
	m.host = w.Host
	one := m.x64
	if w.Arch == image.ARM64 {
		one = m.a64
	}
	one.SetTable(w.Kit.Table)
	one.SetSpecials(w.Specials)
	return one
}

// FuzzMerge: captures of a world merged into room of a size that the input says,
// with context, stack and the CLR's report changed by it. Unchanged ones are
// true, or say where they are not; changed ones end in bounds. If only registers
// are changed, what follows the CLR's first frame is true.
func FuzzMerge(f *testing.F) {
	for b := range byte(12) {
		f.Add(uint64(b), b*13, uint8(255), []byte{}, []byte{})
		f.Add(uint64(b), b*13, b, []byte{}, []byte{})
		f.Add(uint64(b), b*13, uint8(64), []byte{0x80, 1, 0, 1, 3, 0, 0, 0}, []byte{})
		f.Add(uint64(b), b*13, uint8(64), []byte{}, []byte{0, 1, 0, 0, 1, 2, 2, 0x44})
	}
	f.Fuzz(func(t *testing.T, run uint64, kind byte, room uint8, data, report []byte) {
		if len(data) > 64*edit {
			return
		}
		mergers.Lock()
		defer mergers.Unlock()
		r := worlds.Run(run, worlds.Options{Setup: shape(kind), Prepare: func(w *sim.World) {
			w.Host.Judge = func(c *clr.Capture, truth []machine.Frame) {
				one(t, w, c, truth, int(room), data, report)
			}
		}})
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	})
}

// one merges one capture.
func one(t *testing.T, w *sim.World, c *clr.Capture, truth []machine.Frame, room int, data, report []byte) {
	m := mergerOf(w)
	changed, touched := len(data) >= edit || len(report) >= 4, len(report) >= 4
	if changed {
		st := truth[0].State
		stack := append([]byte(nil), c.Stack.Data...)
		touched = registers(data, &st, stack) || touched
		c.Regs, c.Stack.Data = st.Registers(w.Arch), stack
		frames(report, c)
	}
	out := make([]merge.Frame, room)
	res := m.Merge(c, out)
	must.True(t, res.N >= 0 && res.N <= room && res.Probe <= res.N && res.Doubtful <= res.N,
		"%d frames of %d: %+v", res.N, room, res)
	for i := 1; i < res.N; i++ {
		if out[i].Kind == unwind.KindGap && out[i-1].Kind == unwind.KindGap {
			t.Fatalf("two gaps at %d: %+v", i, out[:res.N])
		}
	}
	if !touched {
		follow(t, w, truth, out[:res.N])
	}
	if changed || room == 0 { // no room even for a gap
		return
	}
	if _, err := w.Host.Check(truth, out[:res.N], &res); err != nil {
		t.Fatalf("room for %d, %v: %v", room, res.Gap, err)
	}
}

// follow checks the sure frames below the CLR's first one. The registers of the thread do not matter there.
func follow(t *testing.T, w *sim.World, truth []machine.Frame, out []merge.Frame) {
	first := slices.IndexFunc(out, func(f merge.Frame) bool { return f.Trust == unwind.TrustCLR })
	for i := first + 1; first >= 0 && i < len(out); i++ {
		f := &out[i]
		is := func(x machine.Frame) bool { return x.State.PC == f.IP && x.State.R[w.Arch.SP()] == f.SP }
		if f.Kind != unwind.KindGap && !f.Trust.Doubtful() && !slices.ContainsFunc(truth, is) {
			t.Fatalf("frame %d, %v, is not there: %+v", i, f.Trust, *f)
		}
	}
}

// frames changes the CLR's report, four bytes a change.
func frames(report []byte, c *clr.Capture) {
	c.Frames = append([]clr.SnapshotFrame(nil), c.Frames...)
	for ; len(report) >= 4 && len(c.Frames) > 0; report = report[4:] {
		i, j := int(report[0])%len(c.Frames), int(report[1])%len(c.Frames)
		f := &c.Frames[i]
		switch report[2] % 8 {
		case 0:
			c.Frames[i], c.Frames[j] = c.Frames[j], c.Frames[i]
		case 1:
			c.Frames = c.Frames[:i]
		case 2:
			f.Function = 0
		case 3:
			f.Function = c.Frames[j].Function
		case 4:
			f.SP += uint64(int8(report[3])) * 8
		case 5:
			f.FP += uint64(int8(report[3])) * 8
		case 6:
			f.IP += uint64(int8(report[3]))
		default:
			c.Frames = append(c.Frames, c.Frames[j])
		}
	}
}

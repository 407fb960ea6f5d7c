package managed

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/rva"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// A Windows process with one compiled method, one precompiled image, and native code. Its memory is in
// blocks.
type process struct {
	blocks  map[uint64][]byte // by address
	entries map[uint64]peamd64.RuntimeFunction
	image   Image
	asked   int
}

const (
	heap     = 0x7ff8_0000_0000 // base of the registered functions
	codeAt   = heap + 0x1000
	infoAt   = heap + 0x2000
	parentAt = heap + 0x3000
	imageAt  = 0x7ff9_0000_0000
	nativeAt = 0x7ffa_0000_0000
	stackAt  = 0x10_0000
)

func (p *process) ReadAt(b []byte, addr uint64) bool {
	for at, data := range p.blocks {
		if addr >= at && addr+uint64(len(b)) <= at+uint64(len(data)) {
			copy(b, data[addr-at:])
			return true
		}
	}
	return false
}

func (p *process) FunctionEntry(pc uint64, entry []byte) (uint64, bool) {
	p.asked++
	for _, fn := range p.entries {
		if fn.Contains(uint32(pc - heap)) {
			copy(entry, peamd64.AppendEntry(nil, fn))
			return heap, true
		}
	}
	return 0, false
}

func (p *process) Precompiled(pc uint64) (Image, bool) {
	return p.image, pc >= imageAt && pc < imageAt+0x10000
}

// newProcess: push rbp; push rsi; sub rsp, 32 in the method; two functions in the
// image.
func newProcess() *process {
	text := make([]byte, 0x100)
	copy(text[0x40:], []byte{0x48, 0x83, 0xc4, 0x20, 0x5e, 0x5d, 0xc3})
	pdata := peamd64.AppendEntry(nil, peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x800})
	t := peamd64.New(pdata, rva.Sort([]rva.Block{{RVA: 0x800,
		Data: []byte{1, 4, 1, 0, 4, 0x32, 0, 0}}}), false)
	native := make([]byte, 64)
	native[32-5] = 0xe8
	return &process{
		blocks: map[uint64][]byte{codeAt: text,
			infoAt: {1, 8, 3, 0, 6, 0x32, 2, 0x60, 1, 0x50, 0, 0}, nativeAt: native},
		entries: map[uint64]peamd64.RuntimeFunction{codeAt: {Begin: 0x1000, End: 0x1100, Unwind: 0x2000}},
		image:   Image{imageAt, &t},
	}
}

// stack returns words of 0x9000 plus their index, except those in set.
func stack(set map[int]uint64) *memory.Window {
	data := make([]byte, 64*8)
	for i := range 64 {
		v, ok := set[i]
		if !ok {
			v = 0x9000 + uint64(i)
		}
		binary.LittleEndian.PutUint64(data[8*i:], v)
	}
	return memory.New(memory.Run{Addr: stackAt, Data: data})
}

// at returns a frame at ip whose stack pointer is the stack's first word.
func at(ip uint64, exact bool) *unwind.State {
	r := &context.Registers{Arch: context.ArchAMD64}
	r.AMD64.RIP, r.AMD64.Known = ip, context.AMD64All
	r.AMD64.GPR[context.RSP] = stackAt
	return &unwind.State{Regs: r, Exact: exact, Trust: unwind.TrustContext}
}

func TestSystem(t *testing.T) {
	const caller = nativeAt + 32
	for _, c := range []struct {
		name  string
		ip    uint64
		exact bool
		stack map[int]uint64
		stop  unwind.Stop
		sp    int // words
		trust unwind.Trust
		kind  unwind.Kind
		rsi   uint64 // 0: unchanged
		high  uint64 // of the stack; 0: the window's end
	}{
		{name: "registered method", ip: codeAt + 0x20, stack: map[int]uint64{6: caller}, sp: 7,
			trust: unwind.TrustUnwindInfo, kind: unwind.KindManaged, rsi: 0x9004},
		{name: "its prolog", ip: codeAt + 1, exact: true, stack: map[int]uint64{1: caller}, sp: 2,
			trust: unwind.TrustUnwindInfo, kind: unwind.KindManaged},
		{name: "its epilog", ip: codeAt + 0x44, exact: true, stack: map[int]uint64{2: caller}, sp: 3,
			trust: unwind.TrustEpilog, kind: unwind.KindManaged, rsi: 0x9000},
		{name: "precompiled method", ip: imageAt + 0x120, stack: map[int]uint64{4: caller}, sp: 5,
			trust: unwind.TrustUnwindInfo, kind: unwind.KindManaged},
		{name: "thunk of a precompiled image", ip: imageAt + 0x300, exact: true,
			stack: map[int]uint64{0: caller}, stop: unwind.NoInfo},
		{name: "thunk with a method's return address on top", ip: imageAt + 0x300, exact: true,
			stack: map[int]uint64{0: codeAt + 0x20}, sp: 1, trust: unwind.TrustLeaf, kind: unwind.KindStub},
		{name: "stub behind a native call", ip: 0x5000, exact: true, stack: map[int]uint64{0: caller}, sp: 1,
			trust: unwind.TrustLeaf, kind: unwind.KindStub},
		{name: "stub with no return address", ip: 0x5000, exact: true, stop: unwind.NoInfo},
		{name: "a stub never calls", ip: 0x5000, stack: map[int]uint64{0: caller}, stop: unwind.NoInfo},
		{name: "return address 0", ip: codeAt + 0x20, stack: map[int]uint64{6: 0}, stop: unwind.EndOfStack},
		{name: "return address 0 near the end", ip: codeAt + 0x20, stack: map[int]uint64{6: 0},
			stop: unwind.EndOfStack, high: stackAt + 4096},
		{name: "return address 0 where the stack does not end", ip: codeAt + 0x20,
			stack: map[int]uint64{6: 0}, stop: unwind.NullReturn, high: stackAt + 4104},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables := New(System{newProcess()})
			for pass := range 2 { // the second uses the copies
				s, f := at(c.ip, c.exact), unwind.Frame{}
				before := *s.Regs
				stop := tables.Step(s, stack(c.stack), &unwind.Bounds{High: c.high}, &f)
				must.Equal(t, stop, c.stop, "pass %d", pass)
				if stop != unwind.StopNone {
					expect.True(t, *s.Regs == before && f.CFA == 0 && s.Exact == c.exact,
						"pass %d: a failed step changed the frame", pass)
					continue
				}
				r := &s.Regs.AMD64
				want := c.rsi
				if want == 0 {
					want = before.AMD64.GPR[context.RSI]
				}
				if r.RIP != c.stack[c.sp-1] || r.SP() != stackAt+8*uint64(c.sp) || s.Trust != c.trust ||
					s.Exact || f.Kind != c.kind || r.GPR[context.RSI] != want || r.Known>>context.RSI&1 == 0 {
					t.Errorf("pass %d: rip %#x sp %#x rsi %#x known %#x, %v, %+v", pass, r.RIP, r.SP(),
						r.GPR[context.RSI], r.Known, s.Trust, f)
				}
			}
		})
	}
}

// A copy is used until it is forgotten.
func TestForget(t *testing.T) {
	p := newProcess()
	tables := New(System{p})
	step := func() {
		var f unwind.Frame
		stop := tables.Step(at(codeAt+0x20, false), stack(map[int]uint64{6: 1}), &unwind.Bounds{}, &f)
		must.True(t, stop == unwind.StopNone, "%v", stop)
	}
	walks := func() int {
		n, _ := tables.Walk(at(codeAt+0x20, false), stack(map[int]uint64{6: 1}), &unwind.Bounds{},
			make([]unwind.Frame, 8))
		return n
	}
	expect.Equal(t, walks(), 0, "steps before the first")
	step()
	step()
	expect.Equal(t, p.asked, 1, "how often the system was asked")
	expect.Equal(t, walks(), 1, "steps by a rule")
	p.blocks[infoAt] = []byte{7, 0, 0, 0}
	tables.Forget()
	expect.Equal(t, walks(), 0, "steps by a rule that was forgotten")
	var f unwind.Frame
	stop := tables.Step(at(codeAt+0x20, false), stack(nil), &unwind.Bounds{}, &f)
	expect.True(t, stop == unwind.BadInfo, "%v: what was forgotten is still used", stop)
}

// The codes of a fragment and its parent are undone together.
func TestChained(t *testing.T) {
	p := newProcess()
	p.blocks[infoAt] = append([]byte{1 | peamd64.UNW_FLAG_CHAININFO<<3, 0, 0, 0},
		peamd64.AppendEntry(nil, peamd64.RuntimeFunction{Begin: 0x900, End: 0xa00, Unwind: 0x3000})...)
	p.blocks[parentAt] = []byte{1, 200, 2, 0, 100, 0x22, 50, 0x30}
	var f unwind.Frame
	s := at(codeAt+1, false)
	stop := New(System{p}).Step(s, stack(map[int]uint64{4: 0x77}), &unwind.Bounds{}, &f)
	must.True(t, stop == unwind.StopNone && s.Regs.SP() == stackAt+0x28, "%v sp %#x", stop, s.Regs.SP())
	expect.True(t, s.Regs.AMD64.GPR[context.RBX] == 0x9003,
		"rbx %#x: not the word behind the parent's allocation", s.Regs.AMD64.GPR[context.RBX])
}

// A Thread object is made of words.
func TestHijacked(t *testing.T) {
	const thread, slot = 0x20_0000, 0x7f_0000_1230
	ra := uint64(codeAt + 0x20)
	for _, c := range []struct {
		name  string
		words []uint64 // from the object's eighth word on
		slot  uint64
		want  bool
	}{
		{"the address, then its slot", []uint64{ra, slot}, slot, true},
		{"another slot", []uint64{ra, slot}, slot + 8, false},
		{"the slot first", []uint64{slot, ra}, slot, false},
		{"native code that no call is before", []uint64{nativeAt + 33, slot}, slot, false},
		{"code that no call is before", []uint64{ra - 1, slot}, slot, false},
		{"an older word of the same value", []uint64{5, slot, ra, slot}, slot, true},
		{"nothing", nil, slot, false},
		{"no slot", []uint64{ra, 0}, 0, false},
	} {
		for _, size := range []int{maxThread, pageSize - thread%pageSize} {
			p := newProcess()
			p.blocks[codeAt][0x20-5] = 0xe8
			object := make([]byte, size)
			for i, w := range c.words {
				binary.LittleEndian.PutUint64(object[64+8*i:], w)
			}
			p.blocks[thread] = object
			got, ok := New(System{p}).Hijacked(thread, c.slot)
			if ok != c.want || ok && got != ra {
				t.Errorf("%s: %#x, %v", c.name, got, ok)
			}
		}
	}
	_, ok := New(System{newProcess()}).Hijacked(0, slot)
	expect.True(t, !ok, "a Thread where no memory is")
}

// arm is a source of ARM64 code.
type arm struct{ System }

func (arm) Arch() context.Arch { return context.ArchARM64 }

// On ARM64 the true return address may be native, but must follow a call.
func TestHijackedARM64(t *testing.T) {
	const thread, slot = 0x20_0000, 0x7f_0000_1230
	for _, c := range []struct {
		name string
		ra   uint64
		want bool
	}{
		{"in a method, behind a call", codeAt + 0x20, true},
		{"native, behind a call", nativeAt + 0x10, true},
		{"native, no call", nativeAt + 0x14, false},
		{"not where instructions begin", nativeAt + 0x22, false},
		{"where no memory is", 0x6000_0000_0000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProcess()
			binary.LittleEndian.PutUint32(p.blocks[codeAt][0x1c:], 0xd63f0100)  // blr x8
			binary.LittleEndian.PutUint32(p.blocks[nativeAt][0xc:], 0x94000001) // bl
			copy(p.blocks[nativeAt][0x1e:], []byte{1, 0, 0, 0x94})              // the same, not aligned
			object := make([]byte, maxThread)
			binary.LittleEndian.PutUint64(object[192:], c.ra)
			binary.LittleEndian.PutUint64(object[200:], slot)
			p.blocks[thread] = object
			if ra, ok := New(arm{System{p}}).Hijacked(thread, slot); ok != c.want || ok && ra != c.ra {
				t.Errorf("%#x, %v", ra, ok)
			}
		})
	}
}

// Registers of another architecture are unchanged.
func TestOtherArchitecture(t *testing.T) {
	var f unwind.Frame
	s := &unwind.State{Regs: &context.Registers{Arch: context.ArchARM64}}
	expect.Equal(t, New(System{newProcess()}).Step(s, stack(nil), &unwind.Bounds{}, &f), unwind.NoInfo)
}

// A warm step allocates nothing, whatever the source.
func TestNoAllocations(t *testing.T) {
	tables, mem, s, f := New(System{newProcess()}), stack(map[int]uint64{6: 1}),
		at(codeAt+0x20, false), &unwind.Frame{}
	start := *s.Regs
	n := testing.AllocsPerRun(100, func() {
		*s.Regs = start
		must.Equal(t, tables.Step(s, mem, &unwind.Bounds{}, f), unwind.StopNone)
	})
	expect.Equal(t, n, 0, "allocations")
}

// A frame register that leads down the stack ends the walk, whether the step is made by codes or by a rule.
func TestNoProgress(t *testing.T) {
	p := newProcess()
	p.blocks[infoAt] = []byte{1, 4, 2, 5, 4, 3, 1, 0x50} // push rbp; mov rbp, rsp
	tables := New(System{p})
	for _, c := range []struct {
		rsp  uint64
		stop unwind.Stop
	}{{stackAt, unwind.StopNone}, {stackAt + 8, unwind.StopNone}, {stackAt + 9, unwind.NoProgress},
		{stackAt + 64, unwind.NoProgress}} {
		var f unwind.Frame
		s := at(codeAt+0x20, false)
		s.Regs.AMD64.GPR[context.RBP], s.Regs.AMD64.GPR[context.RSP] = stackAt, c.rsp
		stop := tables.Step(s, stack(map[int]uint64{1: codeAt + 0x20}), &unwind.Bounds{}, &f)
		expect.Equal(t, stop, c.stop, "rsp %#x", c.rsp)
	}
}

// Frames of a method that saves two registers, with more words below and above them.
func BenchmarkStep(b *testing.B) {
	const frames, room = 5, 16
	words := map[int]uint64{}
	for i := range frames {
		words[room+6+7*i] = codeAt + 0x20
	}
	tables, mem, first := New(System{newProcess()}), stack(words), at(codeAt+0x20, false)
	first.Regs.AMD64.GPR[context.RSP] += 8 * room
	var f unwind.Frame
	for b.Loop() {
		regs := *first.Regs
		s := *first
		s.Regs = &regs
		for range frames {
			if stop := tables.Step(&s, mem, &unwind.Bounds{}, &f); stop != unwind.StopNone {
				b.Fatal(stop)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*frames), "ns/frame")
}

package paused

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// runs is memory of a few runs of bytes.
type runs []memory.Run

func (r runs) ReadAt(p []byte, addr uint64) bool { return r.ReadSome(p, addr) == len(p) }

func (r runs) ReadSome(p []byte, addr uint64) int {
	for _, m := range r {
		if m.Addr <= addr && addr < m.End() {
			return copy(p, m.Data[addr-m.Addr:])
		}
	}
	return 0
}

// A handler of a stack overflow runs on a stack of its own. The interrupted frame is found by the address
// of the ucontext on this stack. The walk from there is used only if it is better, and if the thread has
// not moved since its stack was copied. Otherwise it would join frames of two moments.
func TestResume(t *testing.T) {
	const handler, alternate, full, code = 0x10000, 0x20000, 0x40000, 0x70000
	const ucontext = alternate + 0x400
	for _, c := range []struct {
		name     string
		address  uint64 // of the fault
		gap      merge.Gap
		moves    bool
		resumes  bool
		overflow bool
	}{
		{"overflow", full - 8, merge.GapNoInfo, false, true, true},
		{"another fault", full + 0x800, merge.GapNoInfo, false, true, false},
		{"the new walk is worse", full - 8, merge.GapNone, false, false, false},
		{"the thread runs again", full - 8, merge.GapNoInfo, true, false, false},
	} {
		regs := context.Registers{Arch: context.ArchAMD64}
		regs.SetSP(full + 0x100)
		regs.SetIP(code + 0x10)
		signal := make([]byte, 0x1000)
		binary.LittleEndian.PutUint64(signal[0x400+160:], regs.SP())
		binary.LittleEndian.PutUint64(signal[0x400+168:], regs.IP())
		binary.LittleEndian.PutUint32(signal[0x400+304:], sigsegv)
		binary.LittleEndian.PutUint64(signal[0x400+304+16:], c.address)
		stack := make([]byte, 0x1000)
		binary.LittleEndian.PutUint64(stack[0x208:], ucontext)
		now := append([]byte(nil), stack...)
		if c.moves {
			now[0x300]++
		}
		mem := runs{{Addr: handler, Data: now}, {Addr: alternate, Data: signal},
			{Addr: full, Data: make([]byte, 0x1000)}}
		s := &Process{target: target.New(0, context.ArchAMD64, mem, live.NewLoader(0)),
			walker: walk.New(context.ArchAMD64)}
		var maps []live.Mapping
		for _, r := range mem {
			maps = append(maps, live.Mapping{Start: r.Addr, End: r.End()})
		}
		s.Set(maps)
		th := walk.Capture{TID: 7, Regs: regs, Stack: memory.Run{Addr: handler, Data: stack}}
		th.Regs.SetSP(handler + 0x200)
		th.Regs.SetIP(code + 0x20)
		frames := []merge.Frame{{IP: code + 0x20, SP: handler + 0x200, Kind: unwind.KindNative},
			{IP: code + 0x10, SP: alternate + 0x800, Kind: unwind.KindNative}}
		got, gap, overflow := s.resume(&th, 0, frames, c.gap)
		resumed := len(got) > 1 && got[1].SP == full+0x100
		expect.True(t, overflow == c.overflow && resumed == c.resumes, "%s: overflow %v, %v (%v)", c.name,
			overflow, got, gap)
	}
}

// The frames of all threads of a core have a bound, since threads can share one deep stack. The code keeps
// frame pointers.
func TestCoreFrames(t *testing.T) {
	const stack, code, frames = 0x100000, 0x70000, 1000
	data := make([]byte, 16*(frames-1)+16)
	for i := range frames - 1 {
		binary.LittleEndian.PutUint64(data[16*i:], stack+16*uint64(i+1))
		binary.LittleEndian.PutUint64(data[16*i+8:], code+0x10)
	}
	mem := runs{{Addr: stack, Data: data}}
	for _, c := range []struct {
		core bool
		want [4]int
	}{
		{false, [4]int{frames, frames, frames, frames}},
		{true, [4]int{frames, 499, leastFrames - 1, leastFrames - 1}},
	} {
		s := New(context.ArchAMD64, mem, live.NewLoader(0), []live.Mapping{{Start: stack, End: mem[0].End()}})
		s.walker.Unmanaged.SetTable(s.target.Table.WithJIT([]memory.Range{{Start: code, End: code + 0x1000}}))
		if c.core {
			s.SetIncomplete()
			s.left = frames + 500
		}
		var got [4]int
		for i := range got {
			regs := context.Registers{Arch: context.ArchAMD64}
			regs.SetIP(code + 0x20)
			regs.SetSP(stack)
			regs.SetFP(stack)
			regs.AMD64.Known = context.AMD64All
			got[i] = len(s.WalkCopy(&walk.Capture{TID: 7, Regs: regs, Stack: mem[0]}).Frames)
		}
		expect.Equal(t, got, c.want, "core %v", c.core)
	}
}

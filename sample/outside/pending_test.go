package outside

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// What is held is a copy: the source's owner overwrites its own.
func TestPendingCopies(t *testing.T) {
	full := func(b byte) *stackSample {
		some := func() []byte { return bytes.Repeat([]byte{b}, 8) }
		return &stackSample{capture: capture{stack: memory.Run{Addr: 1, Data: some()}, extra: some(), more: []memory.Run{{Addr: 2, Data: some()}}},
			event: &probe.Record{TID: uint32(b), Payload: some()}, time: int64(b), cpu: 3, wall: 4}
	}
	var p pending
	s := full(7)
	if !p.add(s) {
		t.Fatal("no room")
	}
	clear(s.stack.Data)
	clear(s.extra)
	clear(s.more[0].Data)
	clear(s.event.Payload)
	s.event.TID = 0
	held := p.take()
	if len(held) != 1 || len(p.take()) != 0 {
		t.Fatalf("%d samples held", len(held))
	}
	got, want := held[0], full(7)
	for i, pair := range [][2][]byte{{got.stack.Data, want.stack.Data}, {got.extra, want.extra}, {got.more[0].Data, want.more[0].Data}, {got.event.Payload, want.event.Payload}} {
		if !bytes.Equal(pair[0], pair[1]) {
			t.Errorf("part %d is %v", i, pair[0])
		}
	}
	if got.event.TID != 7 || got.time != 7 || got.cpu != 3 || got.wall != 4 || got.stack.Addr != 1 || got.more[0].Addr != 2 {
		t.Errorf("%+v", got)
	}
}

func TestPendingIsBounded(t *testing.T) {
	big := stackSample{capture: capture{stack: memory.Run{Data: make([]byte, 1<<20)}}}
	var p pending
	n := 0
	for ; n < 100 && p.add(&big); n++ {
	}
	if n != maxPendingBytes>>20 {
		t.Errorf("%d MiB are held", n)
	}
	if p.take(); !p.add(&big) {
		t.Error("no room after take")
	}
	p.take()
	for n = 0; n <= maxPending && p.add(&stackSample{}); n++ {
	}
	if n != maxPending {
		t.Errorf("%d samples are held", n)
	}
}

var never = time.Now().Add(24 * time.Hour)

// A sample is held while the runtime may still be found and proven, and no longer once the
// recording ends.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *sampler)
		held   bool
	}{
		{"no runtime yet", func(*sampler) {}, true},
		{"a native program", func(e *sampler) { e.plain = true }, false},
		{"the recording ends", func(e *sampler) { e.ending = true }, false},
		{"the tables are not proven", func(e *sampler) { e.t.tables = new(contract.Tables); e.t.verifyAgain = never }, true},
		{"and the process is not a native one", func(e *sampler) { e.plain, e.t.tables, e.t.verifyAgain = true, new(contract.Tables), never }, true},
	} {
		e := newSampler(0, Config{RateHz: 99}, newTarget(0, context.ArchAMD64, nil, nil), io.Discard)
		c.change(&e)
		s := stackSample{capture: capture{tid: 5}}
		if held := e.hold(&s); held != c.held || len(e.pending.samples) == 1 != c.held {
			t.Errorf("%s: held %v", c.name, held)
		}
		e.alarm.close()
	}
}

// A stack whose managed code cannot be read has its native frames and a gap that says why.
func TestUnprovenCode(t *testing.T) {
	const image, jit, stack = 0x1000_0000, 0x9000_0000, 0x7000
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, 0x100, 0x40)
	table, err := cfi.Load(cfi.Sections{Arch: context.ArchAMD64, EHFrame: frames.Bytes(), EHFrameAddr: 0x100000})
	if err != nil {
		t.Fatal(err)
	}
	modules := module.NewTable(1, []module.Module{{Start: image, End: image + 0x1000, Bias: image, CFI: table}}, []memory.Range{{Start: jit, End: jit + 0x1000}})
	for _, c := range []struct {
		name string
		t    target
		ra   uint64
		want merge.Gap
	}{
		{"no runtime", target{table: modules}, jit + 0x10, merge.GapNoInfo},
		{"a runtime of an unknown layout", target{table: modules, why: "unknown"}, jit + 0x10, merge.GapUnproven},
		{"not proven yet", target{table: modules, tables: new(contract.Tables)}, jit + 0x10, merge.GapUnproven},
		{"no code of a runtime", target{table: modules, tables: new(contract.Tables)}, 0x5555, merge.GapNoInfo},
	} {
		w := newWalker(context.ArchAMD64)
		w.unmanaged.SetTable(modules)
		w.unproven = c.t.unproven
		var data []byte
		for _, word := range []uint64{c.ra, 0, 0} {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		regs := context.FromAMD64(context.AMD64{RIP: image + 0x110, Known: context.AMD64All})
		regs.AMD64.GPR[context.RSP] = stack
		frames, gap, _ := w.walk(&capture{regs: regs, stack: memory.Run{Addr: stack, Data: data}})
		if gap != c.want || len(frames) == 0 || frames[0].IP != image+0x110 || frames[len(frames)-1].Gap != c.want {
			t.Errorf("%s: %v, %+v", c.name, gap, frames)
		}
	}
}

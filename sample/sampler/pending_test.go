package sampler

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
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Held samples are copies: their source overwrites its own.
func TestPendingCopies(t *testing.T) {
	full := func(b byte) *Sample {
		some := func() []byte { return bytes.Repeat([]byte{b}, 8) }
		return &Sample{Capture: walk.Capture{Stack: memory.Run{Addr: 1, Data: some()}, Extra: some(),
			More: []memory.Run{{Addr: 2, Data: some()}}},
			Event: &probe.Record{TID: uint32(b), Payload: some()}, Time: int64(b), Cpu: 3, Wall: 4}
	}
	var p pending
	s := full(7)
	must.True(t, p.Add(s), "no room")
	clear(s.Stack.Data)
	clear(s.Extra)
	clear(s.More[0].Data)
	clear(s.Event.Payload)
	s.Event.TID = 0
	held := p.Take()
	must.True(t, len(held) == 1 && len(p.Take()) == 0, "%d samples held", len(held))
	got, want := held[0], full(7)
	for i, pair := range [][2][]byte{{got.Stack.Data, want.Stack.Data}, {got.Extra, want.Extra},
		{got.More[0].Data, want.More[0].Data}, {got.Event.Payload, want.Event.Payload}} {
		expect.Slices(t, pair[0], pair[1], "part %d", i)
	}
	expect.True(t, got.Event.TID == 7 && got.Time == 7 && got.Cpu == 3 && got.Wall == 4 &&
		got.Stack.Addr == 1 && got.More[0].Addr == 2, "%+v", got)
}

func TestPendingIsBounded(t *testing.T) {
	big := Sample{Capture: walk.Capture{Stack: memory.Run{Data: make([]byte, 1<<20)}}}
	var p pending
	n := 0
	for ; n < 100 && p.Add(&big); n++ {
	}
	expect.Equal(t, n, maxPendingBytes>>20, "MiB are held")
	p.Take()
	expect.True(t, p.Add(&big), "no room after take")
	p.Take()
	for n = 0; n <= maxPending && p.Add(&Sample{}); n++ {
	}
	expect.Equal(t, n, maxPending, "samples are held")
}

var never = time.Now().Add(24 * time.Hour)

// A sample is held while the runtime may still be found and verified, but not after the end of the recording.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *Base)
		held   bool
	}{
		{"no runtime yet", func(*Base) {}, true},
		{"a native program", func(e *Base) { e.Plain = true }, false},
		{"the recording ends", func(e *Base) { e.Ending = true }, false},
		{"the tables are not proven",
			func(e *Base) { e.Target.Tables = new(contract.Tables); e.Target.VerifyAgain = never }, true},
		{"and the process is not a native one",
			func(e *Base) {
				e.Plain, e.Target.Tables, e.Target.VerifyAgain = true,
					new(contract.Tables), never
			}, true},
	} {
		e := New(0, Config{RateHz: 99}, target.New(0, context.ArchAMD64, nil, nil), io.Discard)
		c.change(&e)
		s := Sample{Capture: walk.Capture{TID: 5}}
		held := e.Hold(&s)
		expect.True(t, held == c.held && len(e.Pending.Samples) == 1 == c.held, "%s: held %v", c.name, held)
		e.Alarm.Close()
	}
}

// A stack whose managed code cannot be read, or is freed, has its native frames and a gap with the reason.
func TestUnprovenCode(t *testing.T) {
	const image, jit, stack = 0x1000_0000, 0x9000_0000, 0x7000
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, 0x100, 0x40)
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	modules := module.NewTable(1,
		[]module.Module{{Start: image, End: image + 0x1000, Bias: image, CFI: table}},
		[]memory.Range{{Start: jit, End: jit + 0x1000}})
	always := func(uint64) bool { return true }
	for _, c := range []struct {
		name     string
		t        target.Process
		ra       uint64
		unloaded func(ip uint64) bool
		want     merge.Gap
	}{
		{"no runtime", target.Process{Table: modules}, jit + 0x10, nil, merge.GapNoInfo},
		{"a runtime of an unknown layout", target.Process{Table: modules, Why: "unknown"},
			jit + 0x10, always, merge.GapUnproven},
		{"not proven yet", target.Process{Table: modules, Tables: new(contract.Tables)},
			jit + 0x10, nil, merge.GapUnproven},
		{"no code of a runtime", target.Process{Table: modules, Tables: new(contract.Tables)},
			0x5555, nil, merge.GapNoInfo},
		{"unloaded code", target.Process{Table: modules, Tables: new(contract.Tables)},
			0x5555, always, merge.GapUnloaded},
	} {
		w := walk.New(context.ArchAMD64)
		w.Unmanaged.SetTable(modules)
		w.Unproven, w.Unloaded = c.t.Unproven, c.unloaded
		if c.unloaded == nil {
			w.Unloaded = c.t.Unloaded
		}
		var data []byte
		for _, word := range []uint64{c.ra, 0, 0} {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		regs := context.FromAMD64(context.AMD64{RIP: image + 0x110, Known: context.AMD64All})
		regs.AMD64.GPR[context.RSP] = stack
		frames, gap, _ := w.Walk(&walk.Capture{Regs: regs, Stack: memory.Run{Addr: stack, Data: data}})
		expect.True(t, gap == c.want && len(frames) > 0 && frames[0].IP == image+0x110 &&
			frames[len(frames)-1].Gap == c.want, "%s: %v, %+v", c.name, gap, frames)
	}
}

// A method's role in chains follows from its name.
func TestResumes(t *testing.T) {
	const box = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>.AsyncStateMachineBox<App.Get>."
	for name, want := range map[string]resumes{
		"App.Get (async)":                                    {body: "App.Get"},
		"App.Get(string) (async)":                            {body: "App.Get(string)"},
		"App.Get":                                            {},
		box + "MoveNext(Thread)":                             {},
		box + "ExecutionContextCallback":                     {help: true},
		"System.Threading.ExecutionContext.RunInternal":      {help: true},
		"System.Threading.Tasks.Task.ExecuteWithThreadLocal": {task: true},
		"System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start<App.Get>": {starts: true},
	} {
		want.name = name
		expect.Equal(t, resumesOf(name), want, name)
	}
}

// Stop ends a sleep at any moment: before it, during it, or just as it begins.
func TestStopWakes(t *testing.T) {
	for i := range 300 {
		e := &Base{Alarm: alarm.New()}
		done := make(chan bool, 1)
		go func() { e.Pause(time.Hour); done <- true }()
		switch i % 3 {
		case 1:
			time.Sleep(time.Duration(i) * time.Microsecond)
		case 2:
			time.Sleep(time.Millisecond)
		}
		e.Stop()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("stopped: still sleeps")
		}
	}
}

// Frames are doubtful if their return addresses were read after the sample.
func TestDoubtLater(t *testing.T) {
	frames := []merge.Frame{{SP: 0x100, Trust: unwind.TrustContext}, {SP: 0x200, Trust: unwind.TrustCLR},
		{SP: 0x201, Trust: unwind.TrustCFI}, {SP: 0x300, Trust: unwind.TrustFramePointer},
		{SP: 0x400, Kind: unwind.KindGap}}
	doubtLater(frames, 0x200)
	for i, want := range []unwind.Trust{unwind.TrustContext, unwind.TrustCLR, unwind.TrustLater,
		unwind.TrustFramePointer, unwind.TrustNone} {
		expect.Equal(t, frames[i].Trust, want, "frame %d", i)
	}
}

// Time without samples belongs to dropped samples, each once, unless it may be chance.
func TestNoRoom(t *testing.T) {
	const period = 10
	e := &Base{Period: period}
	for _, c := range []struct {
		name                   string
		missing, dropped, want uint64
	}{
		{"nothing was dropped", 1000, 0, 0},
		{"few samples are missing", 99, 20, 0},
		{"all that is missing was dropped", 150, 20, 150},
		{"less was dropped than is missing", 1000, 20, 50},
		{"all drops are accounted for", 1000, 20, 0},
		{"more were dropped", 1000, 21, 10},
		{"the number is wrong", 1000, 5, 0},
	} {
		expect.Equal(t, e.NoRoom(c.missing, c.dropped), c.want, c.name)
	}
}

// Samples are written before the end of a round if there are many: the buffer stays small.
func TestManySamples(t *testing.T) {
	var to bytes.Buffer
	e := &Base{Stream: NewOutput(nil, &to)}
	frames := make([]wire.Frame, 1000)
	for i := range 200 {
		e.SendAt(1, uint32(i), merge.GapNone, frames, 1, 1)
		expect.True(t, e.Stream.Out.Len() <= 1<<17, "%d bytes wait after %d samples", e.Stream.Out.Len(), i+1)
	}
	expect.True(t, to.Len() > 1<<17, "%d bytes were written", to.Len())
}

func TestUnprovenNote(t *testing.T) {
	expect.Equal(t, unprovenNote(1, "why"), "1 sample ends at managed code: why")
	expect.Equal(t, unprovenNote(20, "why"), "20 samples end at managed code: why")
}

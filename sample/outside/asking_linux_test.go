package outside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/births"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const realTime, relayed = 40, 41 // signals that this process ignores

// program is the memory of a process: that of the probe's header, unless another program has
// replaced it. onRead runs before each read.
type program struct {
	tag    uint32
	other  bool
	reads  int
	onRead func()
}

func (p *program) ReadAt(b []byte, addr uint64) bool { return p.ReadSome(b, addr) == len(b) }

func (p *program) ReadSome(b []byte, _ uint64) int {
	if p.reads++; p.onRead != nil {
		p.onRead()
	}
	if p.other {
		return 0
	}
	clear(b)
	return copy(b, []byte{byte(p.tag), byte(p.tag >> 8), byte(p.tag >> 16), byte(p.tag >> 24)})
}

// asking returns an engine over a probe's file, whose threads are described by files of dir.
func asking(t *testing.T) (e *Engine, mem shared, p *program, dir string) {
	t.Helper()
	e = &Engine{Table: threads.NewTable(os.Getpid()), legacy: int(unix.SIGURG), real: realTime,
		threadListRead: time.Now().Add(time.Hour)}
	unix.Close(e.Kernel.Dir)
	dir = t.TempDir()
	e.Kernel.Dir = must.Get(unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
	t.Cleanup(func() { e.Kernel.Close(e.Tasks) })
	e.file, mem = probeMemory(t)
	mem.set(inHeader, headTag, 0x80001234)
	mem.set(inHeader, headLegacy, uint32(unix.SIGURG))
	mem.set(inHeader, headReal, realTime)
	mem.set(inHeader, headRelay, relayed)
	p = &program{tag: 0x80001234}
	e.Target = &target.Process{Arch: context.ArchAMD64, Mem: p,
		MapsOf: func(int) ([]live.Mapping, error) { return nil, os.ErrNotExist }}
	e.Walker = walk.New(context.ArchAMD64)
	e.PID, e.Stream = os.Getpid(), sampler.NewOutput(e.Target, io.Discard)
	e.Period, e.timerEach = 1e6, 4e6
	e.births = births.New(&e.Base, &e.Table, e.file.Helper, func() bool { return e.startup == nil })
	e.Base.Living, e.Base.Refresh = e.alive, func() bool { return false }
	e.Table.Name, e.Table.Came, e.Table.Gone = func(*threads.Task) {}, func(*threads.Task) {}, e.gone
	return e, mem, p, dir
}

// describe writes a thread's files.
func describe(t *testing.T, dir string, tid uint32, files map[string]string) {
	t.Helper()
	folder := filepath.Join(dir, strconv.Itoa(int(tid)))
	must.Do(t, os.MkdirAll(folder, 0o700))
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
}

// thread starts a thread that can take every signal, and returns its task, which is k otherwise.
func thread(t *testing.T, dir string, k threads.Task) *threads.Task {
	t.Helper()
	k.TID, k.Stat, k.Place, k.Slot = threadOf(t), -1, -1, -1
	describe(t, dir, k.TID, masks(0, 0))
	return &k
}

func masks(pending, blocked uint64) map[string]string {
	return map[string]string{"status": fmt.Sprintf("Name:\tx\nSigPnd:\t%016x\nSigBlk:\t%016x\n",
		pending, blocked)}
}

func bitOf(sig int) uint64 { return 1 << (sig - 1) }

// A thread gets a signal only if it does not block it and has no such signal pending. After an exec, or
// after the end of the recording, no thread gets one.
func TestAsk(t *testing.T) {
	urgent := int(unix.SIGURG)
	for _, c := range []struct {
		name             string
		pending, blocked uint64
		legacy           int
		other, left      bool
		want             asked
		op               uint32
	}{
		{"it can take it", 0, 0, urgent, false, false, sent, 1},
		{"it has one to take", bitOf(urgent), 0, urgent, false, false, later, 0},
		{"it has another to take", bitOf(realTime), 0, urgent, false, false, sent, 1},
		{"it blocks it", 0, bitOf(urgent) | 1, urgent, false, false, cannot, 0},
		{"a fault has left it blocked", 0, bitOf(urgent) | bitOf(realTime), urgent, false, false, sent, 1},
		{"a real-time signal", 0, 0, 0, false, false, sent, 1},
		{"a real-time signal, another program", 0, 0, 0, true, false, cannot, 0},
		{"the recording has ended", 0, 0, 0, false, true, cannot, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, mem, p, dir := asking(t)
			tid := threadOf(t)
			describe(t, dir, tid, masks(c.pending, c.blocked))
			e.legacy, p.other = c.legacy, c.other
			if c.left {
				mem.set(inHeader, headLeft, 1)
			}
			k := &threads.Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Thread: 0x1234}
			got := e.ask(k, probe.OpSample)
			op := mem.get(k.Slot, slotOp)
			expect.True(t, got == c.want && op == c.op && mem.wide(k.Slot, slotExtra) == 0x1234,
				"%v, want %v; operation %d, want %d; Thread at %#x", got, c.want, op, c.op,
				mem.wide(k.Slot, slotExtra))
			relay := c.want == sent && c.blocked != 0
			if k.Left != relay || e.Stats.Relayed == 1 != relay ||
				k.Blocks != (c.want == cannot && c.blocked != 0) {
				t.Errorf("left %v, %d relayed, blocks %v", k.Left, e.Stats.Relayed, k.Blocks)
			}
		})
	}
	e, _, _, _ := asking(t)
	expect.Equal(t, e.ask(&threads.Task{TID: 1, Slot: -1, Thread: 1}, probe.OpSample), later,
		"a thread without files")
}

// If the program takes SIGURG, the kernel copies stacks: the perf clock stays, events only count, and timers
// are ended. If the kernel refuses copies, another signal and the random clock replace SIGURG.
func TestTakenSignalCopies(t *testing.T) {
	rings, err := cpuring.New(cpuring.Config{PID: os.Getpid(), Period: 1e6, Stack: cpuring.StackCopy,
		Kernel: true})
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skip("SKIPPED-CHECK: the kernel permits no copies here, so a taken signal was not tried with them")
	}
	must.Do(t, err)
	rings.Close()
	for _, permitted := range []bool{true, false} {
		e, _, _, dir := asking(t)
		defer func() { e.kernelTime.Close() }()
		if e.cpuClock = sampler.ClockPerf; !permitted {
			e.kernelTime.Tried = time.Now()
		}
		add := func(tid uint32, k threads.Task) *threads.Task {
			files := masks(0, 0)
			files["schedstat"] = "1000000000 0 1\n"
			describe(t, dir, tid, files)
			k.TID, k.Stat, k.Place, k.Armed = tid, -1, -1, true
			e.Tasks[tid] = &k
			return &k
		}
		event := &fakeEvent{}
		main := add(uint32(os.Getpid()), threads.Task{Slot: -1, Event: event, Copied: permitted})
		timer := add(threadOf(t), threads.Task{Slot: -1})
		lost := add(threadOf(t), threads.Task{Slot: -1, Event: &fakeEvent{}, Excused: 1e9,
			Last: threads.Counters{Cpu: 1e9}})
		e.slotOf(lost)
		must.Do(t, e.file.Ask(lost.Slot, probe.OpSample, int(unix.SIGURG)))
		e.leaveSIGURG()
		if clock := e.cpuClock == sampler.ClockPerf; clock != permitted || e.legacy != 0 {
			t.Errorf("copies permitted %v: clock %v, signal %d", permitted, e.cpuClock, e.legacy)
		}
		expect.True(t, main.Copied == permitted && (main.Event != nil) == permitted &&
			main.KernelHits == permitted && event.period == never == permitted,
			"copies permitted %v: %+v", permitted, main)
		expect.True(t, !timer.Armed && timer.IgnoresSignals,
			"copies permitted %v: the timer stays", permitted)
		if e.tookSignal(lost); lost.Blocks != permitted {
			t.Errorf("copies permitted %v: the time of taken signals is blocked: %v", permitted, lost.Blocks)
		}
	}
}

// If the program takes the real-time signal too, the missing time is that of blocked signals.
func TestTakesBothSignals(t *testing.T) {
	e, _, _, dir := asking(t)
	e.legacy = 0
	k := thread(t, dir, threads.Task{Armed: true})
	for i := range maxIgnored + 1 {
		e.ask(k, probe.OpSample)
		expect.True(t, k.Blocks == (i >= maxIgnored), "after %d requests: blocks %v", i+1, k.Blocks)
	}
}

// The engine gives up a signal that a program takes, and every event of it. One answer shows that the
// program does not.
func TestTakenSignal(t *testing.T) {
	for _, answers := range []bool{false, true} {
		e, mem, _, dir := asking(t)
		e.kernelTime.Tried = time.Now() // no copies
		event := &fakeEvent{}
		k := thread(t, dir, threads.Task{Event: event, Armed: true})
		e.Tasks[k.TID] = k
		for i := range maxIgnored + 1 {
			if e.ask(k, probe.OpSample); answers && i == maxIgnored/2 {
				e.record(&probe.Record{TID: k.TID, Why: probe.Armed, Regs: make([]uint64, 17)})
			}
		}
		if given := e.legacy == 0; given == answers || (k.Event == nil) != given ||
			mem.get(inHeader, headTimerSignal) == realTime != given {
			t.Errorf("answers %v: given up %v, event %v", answers, given, k.Event)
		}
	}
}

// A thread has stayed only if nothing shows that it has run or waits elsewhere.
func TestStayed(t *testing.T) {
	const sp, ip = 0x7000, 0x4000
	before := threads.Counters{Cpu: 5, Wait: 6, Turns: 7}
	for _, c := range []struct {
		name, counters, place string
		want                  bool
	}{
		{"it has", "5 6 7", "202 0x1 0x7000 0x4000", true},
		{"it ran, and waits there again", "9 6 8", "202 0x1 0x7000 0x4000", false},
		{"it had a turn", "5 6 8", "202 0x1 0x7000 0x4000", false},
		{"another stack pointer", "5 6 7", "202 0x1 0x7010 0x4000", false},
		{"another instruction", "5 6 7", "202 0x1 0x7000 0x4010", false},
		{"it runs", "5 6 7", "running", false},
	} {
		e, _, _, dir := asking(t)
		describe(t, dir, 77, map[string]string{"schedstat": c.counters + "\n", "syscall": c.place + "\n"})
		k := &threads.Task{TID: 77, Stat: -1, Place: -1, Slot: -1}
		expect.Equal(t, e.stayed(k, sp, ip, before), c.want, c.name)
		e.Kernel.Shut(k)
	}
}

// A blocked thread that has not answered is not read again. Its answer ends that.
func TestAskedOnce(t *testing.T) {
	e, mem, p, dir := asking(t)
	describe(t, dir, 77, masks(0, 0))
	k := &threads.Task{TID: 77, Stat: -1, Place: -1, Slot: -1, Thread: 1, Asked: true}
	e.slotOf(k)
	must.True(t, e.slotOf(k), "no slot")
	mem.set(k.Slot, slotAsk, 1)
	e.blocked(k, 0x7000, 0x4000, threads.Counters{})
	expect.True(t, p.reads == 0 && e.Stats.Unreadable == 0 && k.Asked,
		"read %d times while it has not answered, %d unreadable", p.reads, e.Stats.Unreadable)
	mem.set(k.Slot, slotAnswered, 1)
	e.blocked(k, 0x7000, 0x4000, threads.Counters{})
	if e.Stats.Unreadable != 1 || k.Asked { // its stack is nowhere
		t.Errorf("%d unreadable behind its answer, asked %v", e.Stats.Unreadable, k.Asked)
	}
	k.Asked = true
	e.Tasks[77] = k
	e.record(&probe.Record{TID: 77, Why: probe.Asked, Regs: make([]uint64, 17)})
	expect.True(t, !k.Asked, "a sample that was requested is no answer")
}

// A copy of another stack does not have the thread's bounds.
func TestCaptured(t *testing.T) {
	e, _, _, _ := asking(t)
	k := &threads.Task{TID: 77, Slot: -1, Low: 0x1000, High: 0x9000}
	for _, c := range []struct {
		name      string
		flags     uint16
		stack     int
		low, high uint64
		cut       bool
	}{
		{"its own", 0, 64, 0x1000, 0x9000, false},
		{"its own, cut", probe.Cut, 64, 0x1000, 0x9000, true},
		{"another", probe.Foreign, 64, 0, 0, false},
		{"another, of the largest size", probe.Foreign, 1 << 16, 0, 0, true},
	} {
		got := e.captured(k, &probe.Record{TID: 77, Flags: c.flags, Regs: make([]uint64, 17),
			Stack: make([]byte, c.stack)})
		expect.True(t, got.Low == c.low && got.High == c.high && got.Cut == c.cut,
			"%s: %#x to %#x, cut %v", c.name, got.Low, got.High, got.Cut)
	}
}

// The probe copies a stack without checks only between bounds that stay mapped while the thread lives.
func TestBound(t *testing.T) {
	self := uint32(os.Getpid())
	for _, c := range []struct {
		name      string
		tid       uint32
		path      string
		base      uint64
		low, high uint64
	}{
		{"the main thread's", self, "[stack]", 0, 0x1000, 0x9000},
		{"the main thread on a fiber", self, "", 0x8008, 0, 0},
		{"up to the C library's data", 77, "", 0x8008, 0x1000, 0x8008},
		{"no data", 77, "", 0, 0, 0},
		{"data below", 77, "", 0x4000, 0, 0},
		{"data in another mapping", 77, "", 0x9000, 0, 0},
		{"another's stack", 77, "[stack]", 0, 0, 0},
	} {
		e, mem, _, _ := asking(t)
		e.Target.Maps = []live.Mapping{{Start: 0x1000, End: 0x9000, Path: c.path}}
		k := &threads.Task{TID: c.tid, Stat: -1, Place: -1, Slot: -1}
		e.slotOf(k)
		mem.set(k.Slot, slotBase, uint32(c.base))
		e.bound(k, 0x5000)
		expect.True(t, k.Low == c.low && k.High == c.high && mem.wide(k.Slot, slotLow) == c.low &&
			mem.wide(k.Slot, slotHigh) == c.high,
			"%s: %#x to %#x, in the slot %#x to %#x", c.name, k.Low, k.High, mem.wide(k.Slot, slotLow),
			mem.wide(k.Slot, slotHigh))
	}
}

// Every thread is asked to leave after the recording is marked as ended, also threads that started in the
// meantime. disarm succeeds only if the probe reports that it has left.
func TestDisarm(t *testing.T) {
	for _, answers := range []bool{false, true} {
		e, mem, p, dir := asking(t)
		e.Config = sampler.Config{NoCPU: true, NoWall: true}
		old, young := threadOf(t), threadOf(t)
		files := func(tid uint32) {
			describe(t, dir, tid, masks(0, 0))
			describe(t, dir, tid, map[string]string{"schedstat": "1 1 1\n", "comm": "x\n"})
		}
		files(old)
		e.List(time.Now(), 0)
		e.Clock.Idle = true // new threads are not listed soon
		files(young)
		e.Add(99, 0) // it has ended
		gone := e.Tasks[99]
		e.slotOf(gone)
		gone.Samples = 1
		early := false
		p.onRead = func() {
			early = early || mem.get(inHeader, headEnding) == 0
			if answers && p.reads > 3 {
				mem.set(inHeader, headLeft, 2)
			}
		}
		began := time.Now()
		limit := 600 * time.Millisecond
		if answers {
			limit = 10 * time.Second
		}
		if got := e.disarm(limit); got != answers {
			t.Errorf("answers %v: left %v after %v", answers, got, time.Since(began))
		}
		for _, tid := range []uint32{old, young} {
			if k := e.Tasks[tid]; k == nil || !answers && mem.get(k.Slot, slotOp) != uint32(probe.OpLeave) {
				t.Errorf("thread %d was not asked to leave", tid)
			}
		}
		expect.True(t, !early && e.Tasks[99] == nil && mem.get(gone.Slot, slotTID) == 0,
			"a signal before the end %v; the slot of an ended thread belongs to %d", early,
			mem.get(gone.Slot, slotTID))
	}
}

// A thread whose stack the kernel copies gets its signals back once it does not block them any more. What a
// fault has left blocked is unblocked.
func TestEndCopies(t *testing.T) {
	urgent, mine := bitOf(int(unix.SIGURG)), bitOf(10)
	for _, c := range []struct {
		name          string
		blocked       uint64
		looks         int
		short         bool
		copied, asked bool
		blocks        bool
		before        int // looks before at which it did not block the signal
	}{
		{"not blocked, for a moment", 0, manyMaskChecks - 1, false, true, false, false, 0},
		{"not blocked for some time", 0, manyMaskChecks, false, false, false, false, 0},
		{"not blocked, a short copy", 0, 1, true, false, false, false, 0},
		{"left by a fault, for a moment", urgent, manyMaskChecks - 1, false, true, false, false, 0},
		{"left by a fault for some time", urgent, manyMaskChecks, false, true, true, false, 0},
		{"left by a fault, a short copy", urgent, 1, true, true, true, false, 0},
		{"blocked by the program", urgent | mine, manyMaskChecks, false, true, false, false, 0},
		{"blocked by the program, a short copy", urgent | mine, 1, true, true, false, true, 0},
		{"left by a fault a moment ago", urgent, manyMaskChecks - 1, false, true, false, false,
			manyMaskChecks - 1},
	} {
		e, _, _, dir := asking(t)
		tid := uint32(unix.Gettid())
		k := &threads.Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Event: &fakeEvent{}, Copied: true}
		for i := range c.before + c.looks {
			if describe(t, dir, tid, masks(0, c.blocked)); i < c.before {
				describe(t, dir, tid, masks(0, 0))
			}
			e.endCopies(k, int64(i+1)*maskCheckEvery, c.short)
		}
		if asked := e.Stats.Relayed > 0; k.Copied != c.copied || asked != c.asked || k.Blocks != c.blocks ||
			k.Copied == (k.Event.(*fakeEvent).period > 0) {
			t.Errorf("%s: copied %v, asked %v, blocks %v", c.name, k.Copied, asked, k.Blocks)
		}
	}
}

// Signals that a fault has left blocked are unblocked when samples are missing, at most once a second.
func TestUnblock(t *testing.T) {
	urgent := bitOf(int(unix.SIGURG))
	for _, c := range []struct {
		name    string
		blocked uint64
		ago     time.Duration // since the last time
		open    bool          // the thread has not answered yet
		asked   bool
		blocks  bool
	}{
		{"left by a fault", urgent, time.Hour, false, true, false},
		{"left by another fault a moment ago", urgent, -time.Hour, false, false, true},
		{"unblocked a moment ago, not taken yet", urgent, -time.Hour, true, false, false},
		{"blocked by the program", urgent | bitOf(10), time.Hour, false, false, true},
	} {
		e, mem, _, dir := asking(t)
		tid := uint32(unix.Gettid())
		describe(t, dir, tid, masks(urgent, c.blocked))
		k := &threads.Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Event: &fakeEvent{}, Looked: true,
			Last:        threads.Counters{Cpu: fewMissed * uint64(e.Period)},
			UnblockedAt: time.Now().Add(-c.ago).UnixNano()}
		if c.open {
			e.slotOf(k)
			mem.set(k.Slot, slotAsk, 1)
		}
		if e.noteBlocked(k); e.Stats.Relayed > 0 != c.asked || k.Blocks != c.blocks {
			t.Errorf("%s: asked %v, blocks %v", c.name, e.Stats.Relayed > 0, k.Blocks)
		}
		e.kernelTime.Close()
	}
}

// The engine repeats no figure that has not changed, so an idle process costs few messages. At the end it
// repeats the process's time, for recordings that joined later.
func TestSendsChanges(t *testing.T) {
	e, _, _, _ := asking(t)
	e.cpuClock, e.events = sampler.ClockPerf, events.New(&e.Base, e, e.file)
	count := func(send func()) (n int) {
		e.Stream.Out.Reset()
		send()
		for r := wire.NewReader(bytes.NewReader(e.Stream.Out.Bytes())); ; n++ {
			if _, err := r.Next(); err != nil {
				return n
			}
		}
	}
	n := count(e.write)
	expect.True(t, n >= 30, "%d figures at first", n)
	expect.Equal(t, count(e.write), 0, "figures that have not changed")
	e.Stats.Rounds++
	expect.Equal(t, count(e.write), 1, "figures after a round")
	e.accounted, e.ranBefore = 5, -1
	expect.Equal(t, count(e.accountProcess), 1, "times of the process")
	expect.Equal(t, count(e.accountProcess), 0, "times that have not changed")
	expect.Equal(t, count(e.accountAll), 1, "times at the end")
}

// A thread that waits very often gets a CPU timer in place of its event, and its event back later. If the
// kernel refuses the timer, or the timer's signal is taken by the program, it keeps the event.
func TestChangeTimer(t *testing.T) {
	e, mem, _, dir := asking(t)
	event := &fakeEvent{}
	k := thread(t, dir, threads.Task{Event: event, Armed: true})
	e.Tasks[k.TID], e.cpuClock = k, sampler.ClockPerf
	e.arm(k)
	expect.True(t, k.Slot < 0 && k.Event == event, "it waits seldom: %+v", *k)
	k.WaitsOften = true
	e.arm(k)
	must.True(t, k.Slot >= 0, "no slot")
	asked := func(op probe.Op, n uint32) bool {
		return mem.get(k.Slot, slotOp) == uint32(op) && mem.get(k.Slot, slotAsk) == n
	}
	e.arm(k) // it has not answered
	expect.True(t, asked(probe.OpArm, 1) && k.Event == event && !k.Timed, "asked: %+v", *k)
	mem.set(k.Slot, slotAnswered, 1)
	mem.set(k.Slot, slotTimer, 5)
	e.arm(k)
	expect.True(t, asked(probe.OpArm, 1) && k.Event == nil && k.Timed && k.Armed, "it has a timer: %+v", *k)
	expect.Equal(t, e.between(k), max(e.Period, int64(e.Config.WallEvery)), "time between polls")
	k.WaitsOften = false
	e.arm(k)
	expect.True(t, asked(probe.OpDisarm, 2) && k.Timed, "it waits seldom again: %+v", *k)
	mem.set(k.Slot, slotAnswered, 2)
	mem.set(k.Slot, slotTimer, 0)
	k.Event = event
	e.arm(k)
	expect.True(t, !k.Timed && k.Event == event && asked(probe.OpDisarm, 2), "it has lost the timer: %+v", *k)
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"the kernel refuses", func() { mem.set(k.Slot, slotError, uint32(unix.EAGAIN)) }},
		{"a signal would end its system call", func() { mem.set(k.Slot, slotError, 0); k.Call = 7 }},
		{"its stacks are copied", func() { k.Call, k.Copied = -1, true }},
	} {
		k.WaitsOften = true
		c.change()
		e.arm(k)
		expect.True(t, asked(probe.OpDisarm, 2) && k.Event == event && !k.WaitsOften, "%s: %+v", c.name, *k)
	}
	k.Copied, k.WaitsOften = false, true
	e.arm(k)
	must.True(t, asked(probe.OpArm, 3), "asked: %+v", *k)
	mem.set(k.Slot, slotAnswered, 3)
	mem.set(k.Slot, slotTimer, 5)
	k.WaitsOften = false // while the thread was on its way to the handler
	e.arm(k)
	expect.True(t, k.Timed && k.Event == nil && asked(probe.OpDisarm, 4), "it no longer waits: %+v", *k)
	mem.set(k.Slot, slotAnswered, 4)
	mem.set(k.Slot, slotTimer, 0)
	expect.True(t, e.lostTimer(k), "it has lost the timer")
	k.IgnoresSignals, k.WaitsOften = true, true
	mem.set(k.Slot, slotTimer, 5)
	e.arm(k)
	expect.True(t, asked(probe.OpDisarm, 5), "the program takes the signal: %+v", *k)
}

// A thread whose clock is a timer, because the kernel gives it no event, keeps that timer.
func TestKeepTimer(t *testing.T) {
	e, mem, _, dir := asking(t)
	k := thread(t, dir, threads.Task{Eventless: true, Call: -1})
	k.Last.Cpu = youngest
	e.Tasks[k.TID], e.cpuClock = k, sampler.ClockPerf
	e.arm(k)
	must.True(t, k.Slot >= 0 && mem.get(k.Slot, slotAsk) == 1, "asked: %+v", *k)
	mem.set(k.Slot, slotAnswered, 1)
	mem.set(k.Slot, slotTimer, 5)
	for range 3 {
		e.arm(k)
	}
	expect.True(t, k.Armed && !k.Timed && mem.get(k.Slot, slotAsk) == 1, "%+v", *k)
}

// The random clock asks no thread with a timer.
func TestDrawTimed(t *testing.T) {
	timed, other := threadOf(t), threadOf(t)
	e, _ := drawing(t, map[uint32]string{timed: "R", other: "R"})
	e.Tasks[timed].Timed = true
	e.drawAll(0)
	expect.True(t, !e.Tasks[timed].Drawn.Open && e.Tasks[other].Drawn.Open, "the wrong threads were asked")
}

// While a request is unanswered, the answer to an earlier one does not count. A refusal is counted once.
func TestRefusedTimer(t *testing.T) {
	e, mem, _, dir := asking(t)
	k := thread(t, dir, threads.Task{Armed: true})
	must.True(t, e.slotOf(k), "no slot")
	mem.set(k.Slot, slotError, uint32(unix.EAGAIN))
	mem.set(k.Slot, slotAsk, 1)
	expect.True(t, e.lacksTimer(k) && e.Stats.Refused == 0, "not answered: %+v", *k)
	expect.True(t, !k.Armed, "armed without a timer")
	for range 2 {
		mem.set(k.Slot, slotAnswered, mem.get(k.Slot, slotAsk))
		expect.True(t, !e.lacksTimer(k) && e.Stats.Refused == 1, "refused %d times", e.Stats.Refused)
	}
}

// A thread without samples is asked after some periods, or some ticks if they are longer, and then only after
// as many again. It is asked sooner if it has not answered.
func TestSilentPeriods(t *testing.T) {
	const unit = threads.SlowTick
	for _, c := range []struct {
		period  int64
		waiting bool
		used    []uint64
		asked   uint64
	}{
		{1e6, false, []uint64{maxQuiet * unit}, 0},
		{1e6, false, []uint64{maxQuiet * unit, 1}, 1},
		{1e6, false, []uint64{maxQuiet*unit + 1, 1}, 1},
		{1e6, false, []uint64{maxQuiet*unit + 1, maxQuiet*unit + 1}, 2},
		{1e6, true, []uint64{fewQuiet * unit}, 0},
		{1e6, true, []uint64{fewQuiet*unit + 1}, 1},
		{2 * unit, false, []uint64{maxQuiet*unit + 1}, 0},
	} {
		e, mem, _, dir := asking(t)
		e.Period = c.period
		k := thread(t, dir, threads.Task{Armed: true})
		must.True(t, e.slotOf(k), "no slot")
		if c.waiting {
			mem.set(k.Slot, slotAsk, 1)
		}
		for _, used := range c.used {
			e.silent(k, used)
			if !c.waiting {
				mem.set(k.Slot, slotAnswered, mem.get(k.Slot, slotAsk))
			}
		}
		expect.Equal(t, e.Stats.Asked, c.asked, "%+v", c)
	}
}

// If the kernel cannot queue a signal, the thread can be asked later.
func TestFullQueue(t *testing.T) {
	e, _, _, dir := asking(t)
	k := thread(t, dir, threads.Task{Thread: 1})
	var limit unix.Rlimit
	must.Do(t, unix.Getrlimit(unix.RLIMIT_SIGPENDING, &limit))
	none := unix.Rlimit{Max: limit.Max}
	must.Do(t, unix.Setrlimit(unix.RLIMIT_SIGPENDING, &none))
	e.legacy = 0
	got := e.ask(k, probe.OpSample)
	must.Do(t, unix.Setrlimit(unix.RLIMIT_SIGPENDING, &limit))
	expect.True(t, got == later && e.Stats.Unsent == 1, "%v, %d unsent", got, e.Stats.Unsent)
}

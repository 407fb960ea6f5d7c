package outside

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// said describes the samples and the CPU times of a stream, in order.
func said(stream []byte) (all []string) {
	for r := wire.NewReader(bytes.NewReader(stream)); ; {
		m, err := r.Next()
		if err != nil {
			return all
		}
		switch m := m.(type) {
		case *wire.Sample:
			all = append(all, fmt.Sprintf("sample of %d", m.TID))
		case *wire.Usage:
			if m.TID != wire.ProcessTID {
				all = append(all, fmt.Sprintf("time of %d, cause %d", m.TID, m.Cause))
			}
		}
	}
}

// putSample puts a sample of a thread's timer into the ring, as the probe does.
func putSample(mem shared, tid uint32) {
	const size = 768
	at := binary.LittleEndian.Uint64(mem[headHead:])
	b := mem[probe.FileSize-probe.RingSize+int(at):]
	for offset, v := range map[int]uint64{0: at | 1, 8: at | 2, 16: size | uint64(tid)<<32,
		24: ^uint64(0)>>32 | uint64(probe.Timer)<<32, 40: 1} {
		binary.LittleEndian.PutUint64(b[offset:], v)
	}
	binary.LittleEndian.PutUint64(mem[headHead:], at+size)
}

// The last samples of a thread are weighed before its CPU time is sent.
func TestLastSamples(t *testing.T) {
	e, mem, _, dir := asking(t)
	var out bytes.Buffer
	e.Stream.To, e.Plain, e.timerEach = &out, true, 5
	e.Syscalls = sampler.NewSyscalls(e.Target.Arch, e.Target.Mem)
	e.events = events.New(&e.Base, e, e.file)
	describe(t, dir, 77, map[string]string{"schedstat": "9 6 7\n"})
	k := &threads.Task{TID: 77, Stat: -1, Place: -1, Slot: -1, Last: threads.Counters{Cpu: 9}}
	e.Tasks[77] = k
	putSample(mem, 77)
	e.ended(k)
	e.Stream.Push()
	expect.Slices(t, said(out.Bytes()),
		[]string{"sample of 77", fmt.Sprint("time of 77, cause ", wire.CauseShort)}, "the stream")
	expect.Equal(t, k.Weighed, 5, "nanoseconds of samples")
}

// At the end of a recording, held samples are sent, although the runtime's tables were never verified. The
// times that are sent after them have no cause.
func TestEndOfHeldSamples(t *testing.T) {
	e, _, _, dir := asking(t)
	var out bytes.Buffer
	e.Stream.To, e.events = &out, events.New(&e.Base, e, e.file)
	describe(t, dir, 77, map[string]string{"schedstat": "9 6 7\n"})
	e.Tasks[77] = &threads.Task{TID: 77, Stat: -1, Place: -1, Slot: -1, Armed: true, Weighed: 9,
		Last: threads.Counters{Cpu: 9}}
	s := sampler.Sample{Capture: walk.Capture{TID: 77, Partial: true, Low: 0x7000, High: 0x8000,
		Regs:  walk.StoppedAt(e.Target.Arch, 0x7000, 0x4000),
		Stack: memory.Run{Addr: 0x7000, Data: make([]byte, 64)}}, Wall: 3}
	expect.True(t, e.Hold(&s), "held")
	e.end("a test")
	expect.Slices(t, said(out.Bytes()),
		[]string{"sample of 77", fmt.Sprint("time of 77, cause ", wire.CauseNone)}, "the stream")
}

// A thread with a slot samples itself. The probe must have the thread's current Thread, and the address of
// the hijack stub.
func TestProbeIsUpToDate(t *testing.T) {
	e, mem, _, _ := asking(t)
	k := &threads.Task{TID: threadOf(t), Stat: -1, Place: -1, Slot: -1, Thread: 0x1234}
	e.Tasks[k.TID] = k
	expect.True(t, e.slotOf(k), "a slot")
	expect.Equal(t, mem.wide(k.Slot, slotExtra), 0x1234, "the Thread")
	e.Target.Tables = &contract.Tables{}
	e.objects() // the runtime's list does not have it
	expect.Equal(t, mem.wide(k.Slot, slotExtra), 0, "the Thread of a thread that has none")

	e.Target.Mapped = func() *module.Table { return module.NewTable(1, nil, nil) }
	binary.LittleEndian.PutUint64(mem[headPatch:], 0x4321)
	expect.True(t, e.refresh(), "new modules")
	expect.Equal(t, binary.LittleEndian.Uint64(mem[headPatch:]), e.Walker.HijackStub, "the hijack stub")
}

// opaque is managed code whose caller depends on a register that is not known.
type opaque struct{ *managed.Tables }

func (opaque) Walk(*unwind.State, *memory.Window, *unwind.Bounds, []unwind.Frame) (int, []clr.FunctionID) {
	return 0, nil
}

func (opaque) Step(*unwind.State, *memory.Window, *unwind.Bounds, *unwind.Frame) unwind.Stop {
	return unwind.Unreadable
}

func (opaque) Function(unwind.Address) (clr.FunctionID, bool) { return 0, true }

// A thread is asked only while it sleeps in the system call that the engine saw. A signal might end another
// call.
func TestAsksWhereItLooked(t *testing.T) {
	for _, moves := range []bool{false, true} {
		e, _, _, dir := asking(t)
		tid := threadOf(t)
		const at = "202 0x1 0x7000 0x4000"
		files := masks(0, 0)
		files["schedstat"], files["syscall"] = "5 6 7\n", at+"\n"
		describe(t, dir, tid, files)
		e.Plain, e.Target.Maps = true, []live.Mapping{{Start: 0x7000, End: 0x8000}}
		e.Walker.Code = opaque{}
		e.Base.Living = func() bool {
			if moves {
				files["syscall"] = "202 0x1 0x7000 0x4010\n"
				describe(t, dir, tid, files)
			}
			return true
		}
		k := &threads.Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Low: 0x7000, High: 0x8000, Thread: 1}
		e.blocked(k, 0x7000, 0x4000, threads.Counters{Cpu: 5, Wait: 6, Turns: 7})
		expect.Equal(t, k.Asked, !moves, "asked if it moves: %v", moves)
		e.Kernel.Shut(k)
	}
}

// The time of a poll that finds the thread running goes to its samples of CPU time. The time of one
// that finds it blocked goes to the sample of that stack, also if there is no room to hold the stack.
func TestTimeOfPoll(t *testing.T) {
	const passed = int64(time.Hour)
	for _, c := range []struct {
		name, place string
		full        bool
		ran, held   bool
	}{
		{"running", "running", false, true, false},
		{"blocked", "202 0x1 0x7000 0x4000", false, false, true},
		{"blocked, no room", "202 0x1 0x7000 0x4000", true, false, false},
	} {
		e, _, _, dir := asking(t)
		var out bytes.Buffer
		e.Stream.To, e.Target.Maps = &out, []live.Mapping{{Start: 0x7000, End: 0x8000}}
		describe(t, dir, 77, map[string]string{"schedstat": "5 6 7\n", "syscall": c.place + "\n"})
		for e.Pending.Samples = nil; c.full && e.Pending.Add(&sampler.Sample{}); {
		}
		before := len(e.Pending.Samples)
		k := &threads.Task{TID: 77, Stat: -1, Place: -1, Slot: -1, Thread: 1, Seen: true,
			Polled: time.Now().UnixNano() - passed}
		e.poll(k)
		e.Stream.Push()
		var held, sent int64
		for _, s := range e.Pending.Samples[before:] {
			held += s.Wall
		}
		for r := wire.NewReader(&out); ; {
			m, err := r.Next()
			if err != nil {
				break
			}
			if s, ok := m.(*wire.Sample); ok {
				sent += int64(s.WallNanos)
			}
		}
		expect.True(t, k.Unsampled == 0 && k.Ran >= passed == c.ran && held >= passed == c.held &&
			sent >= passed == (!c.ran && !c.held),
			"%s: unsampled %d, ran %d, held %d, sent %d", c.name, k.Unsampled, k.Ran, held, sent)
		e.Kernel.Shut(k)
	}
}

// A held sample whose walk needs registers is not sent. The next sample of the thread gets its time. At the
// end of the recording there is no next sample.
func TestHeldWithoutRegisters(t *testing.T) {
	for _, ending := range []bool{false, true} {
		e, _, _, _ := asking(t)
		var out bytes.Buffer
		e.Stream.To, e.Plain, e.Ending, e.Walker.Code = &out, true, ending, opaque{}
		k := &threads.Task{TID: 77, Stat: -1, Place: -1, Slot: -1, Unsampled: 4}
		e.Tasks[77] = k
		e.WalkLater(&sampler.Sample{Capture: walk.Capture{TID: 77, Partial: true, Low: 0x7000, High: 0x8000,
			Regs:  walk.StoppedAt(e.Target.Arch, 0x7000, 0x4000),
			Stack: memory.Run{Addr: 0x7000, Data: make([]byte, 64)}}, Wall: 3})
		e.Stream.Push()
		sent := len(said(out.Bytes()))
		expect.True(t, sent == 1 == ending && k.Unsampled == 7 == !ending,
			"ending %v: %d samples, unsampled %d", ending, sent, k.Unsampled)
	}
}

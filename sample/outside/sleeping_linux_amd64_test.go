package outside

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// A thread whose system call a signal would end gets a signal only if the runtime's own code waits there.
func TestMayInterrupt(t *testing.T) {
	const nanosleep, read, libc, app, system, clr = 35, 0, 0x1010, 0x2010, 0x3010, 0x4010
	at := func(ips ...uint64) (frames []wire.Frame) {
		for _, ip := range ips {
			frames = append(frames, wire.Frame{IP: ip, Module: uint32(ip >> 12)})
		}
		return frames
	}
	for _, c := range []struct {
		name   string
		call   int64
		thread string
		frames []wire.Frame
		want   bool
	}{
		{"a read, by a library of the program", read, "x", at(libc, app), true},
		{"a sleep, by a library of the program", nanosleep, "x", at(libc, app, clr), false},
		{"a sleep, by a library of the runtime", nanosleep, "x", at(libc, libc, system, app), true},
		{"a sleep, by the runtime", nanosleep, "x", at(libc, clr), true},
		{"a sleep, by code that was not found", nanosleep, "x", at(libc), false},
		{"a sleep of the runtime's own thread", nanosleep, ".NET EventPipe", at(libc), true},
		{"a sleep of a worker", nanosleep, ".NET TP Worker", at(libc), false},
		{"no frames", nanosleep, "x", nil, false},
	} {
		e, _, _, _ := asking(t)
		for i, path := range []string{"/lib/libc.so.6", "/app/libapp.so", "/dotnet/libSystem.Native.so",
			"/dotnet/libcoreclr.so"} {
			start := uint64(i+1) << 12
			e.Target.Maps = append(e.Target.Maps,
				live.Mapping{Start: start, End: start + 0x1000, Exec: true, Path: path})
		}
		e.Target.Path, e.Stream.Frames = "/dotnet/libcoreclr.so", c.frames
		k := &threads.Task{TID: 77, Name: c.thread, Call: c.call}
		expect.Equal(t, e.mayInterrupt(k), c.want, c.name)
	}
}

// A thread that has run without answering shows that the program takes the signal, after a few signals. One
// that then blocks the signal, has it pending, or sleeps shows nothing.
func TestSilent(t *testing.T) {
	for _, c := range []struct {
		name             string
		pending, blocked uint64
		call             string
		want             bool // SIGURG is given up
	}{
		{"it took the signals", 0, 0, "running", true},
		{"it blocks the signal", 0, bitOf(int(unix.SIGURG)), "running", false},
		{"the signal is pending", bitOf(int(unix.SIGURG)), 0, "running", false},
		{"it sleeps", 0, 0, "35 0x1 0x2 0x3 0x4 0x5 0x6 0x7000 0x4000", false},
	} {
		e, _, _, dir := asking(t)
		tid := threadOf(t)
		k := &threads.Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Thread: 1, Armed: true}
		e.Tasks[tid] = k
		files := masks(0, 0)
		files["syscall"] = "running\n"
		describe(t, dir, tid, files)
		e.silent(k, 1e10)
		files = masks(c.pending, c.blocked)
		files["syscall"] = c.call + "\n"
		describe(t, dir, tid, files)
		for range 5 {
			e.silent(k, 1e10)
		}
		given := e.legacy == 0 || e.ignored >= maxIgnored
		expect.True(t, given == c.want, "%s: given up %v, %d asked", c.name, given, e.Stats.Asked)
	}
}

// The threads that a signal would wake are the last to be asked at the end.
func TestLeaveOrder(t *testing.T) {
	e, _, _, dir := asking(t)
	for tid, k := range map[uint32]struct {
		call string
		slot int
		cpu  uint64
	}{
		1: {"35 0x1 0x7000 0x4000", 0, 9}, 2: {"running", -1, 3},
		3: {"running", 1, 4}, 4: {"0 0x1 0x7000 0x4000", 2, 5},
	} {
		describe(t, dir, tid, map[string]string{"syscall": k.call + "\n"})
		e.Tasks[tid] = &threads.Task{TID: tid, Stat: -1, Place: -1, Slot: k.slot,
			Last: threads.Counters{Cpu: k.cpu}}
	}
	var order []uint32
	for _, k := range e.LeaveOrder() {
		order = append(order, k.TID)
	}
	want := []uint32{4, 3, 2, 1}
	expect.True(t, slices.Equal(order, want), "%v, want %v", order, want)
}

package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/gdb"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// wholeEvents checks that every stack ends at its thread's base, every managed frame has a name, and nothing
// was lost.
func (f *jsonProfile) wholeEvents(t *testing.T) {
	t.Helper()
	managed, events := 0, 0
	for i := range f.Stacks {
		s := &f.Stacks[i]
		if s.Event == "" {
			continue
		}
		events += int(s.Count)
		if !s.Complete && !s.Open {
			t.Errorf("%d %s stacks are not complete: %s: %v", s.Count, s.Event, s.Gap, f.stackNames(i))
		}
		for _, k := range s.Frames {
			if f.Frames[k].Class != "managed" {
				continue
			}
			managed++
			if n := f.Frames[k].Name; strings.HasPrefix(n, "method") || strings.HasPrefix(n, "managed code") {
				t.Errorf("a managed frame is called %q", n)
			}
		}
	}
	c := f.Counters
	for _, key := range []string{"crowded", "unwalked", "otherwise", "malformed"} {
		expect.Equal(t, c["event_"+key], 0, "events %s", key)
	}
	f.cut(t)
	// On a busy machine the tool may be too late for some of many. Waits are compared one by one.
	if n := c["event_missed"]; n*4 > n+int64(events) ||
		n > 0 && c["event_allocs"]+c["event_exceptions"] == 0 {
		t.Errorf("%d events of %d are lost", n, n+int64(events))
	}
	expect.Figures(t, c["event_delivery"] >= 2 && managed != 0,
		"%d events, %d managed frames in distinct stacks; %+v", events, managed, c)
}

// cut checks that the functions that deliver events are on no stack. They are the same for all; with them,
// events of different kinds would have the same function on top.
func (f *jsonProfile) cut(t *testing.T) {
	t.Helper()
	of := map[string]string{}
	for i := range f.Stacks {
		s := &f.Stacks[i]
		if s.Event == "" || s.Open || len(s.Frames) == 0 {
			continue
		}
		kind, leaf := strings.TrimPrefix(s.Event, "monitor-"), f.Frames[s.Frames[0]].Name
		if other, ok := of[leaf]; ok && other != kind {
			t.Errorf("%s is on top of a %s and of a %s", leaf, kind, other)
		}
		of[leaf] = kind
	}
}

// toWorld is the offset from the program's clock to that of the recording.
func toWorld() int64 {
	var m unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &m)
	return time.Now().UnixNano() - m.Nano()
}

// eventOf is the recording's name for a kind of the truth.
func eventOf(expect string) []string {
	if strings.HasPrefix(expect, "Contention") {
		return []string{"lock"}
	}
	return []string{"wait", "monitor-wait"}
}

// slack is the tolerance between two clocks.
const slack = int64(time.Millisecond)

// judge compares a recording with the program's own list: each of its waits is there exactly once, with its
// kind, within its time limits and with its frames. A wait that the list marks as none is not there. Waits
// that the list does not contain are not checked.
func (f *jsonProfile) judge(t *testing.T, truth []waittruth.Wait) {
	t.Helper()
	offset := toWorld()
	for _, w := range truth {
		found, nanos := 0, int64(0)
		for i := range f.Waits {
			g := &f.Waits[i]
			s := &f.Stacks[g.Stack]
			start := g.Start.UnixNano() - offset
			if f.Threads[s.Thread].ID != w.TID || s.Open || start < int64(w.Before)-slack ||
				start+g.NS > int64(w.After)+slack {
				continue
			}
			if w.Expect == "none" ||
				slices.Contains(eventOf(w.Expect), s.Event) && inOrder(f.stackNames(g.Stack), w.Frames) {
				found++
				nanos += g.NS
			}
		}
		want := 1
		if w.Expect == "none" {
			want = 0
		}
		// Under load a thread may begin to wait late: then its own clock counts.
		if own := min(w.Min*1e6, 0.9*float64(w.After-w.Before)); found != want ||
			want > 0 && float64(nanos) < own {
			t.Errorf("%s of thread %d: %d waits of %.1f ms together, want %d of at least %.0f", w.Scenario,
				w.TID, found, float64(nanos)/1e6, want, own/1e6)
		}
	}
	f.sums(t)
}

// sums checks that no thread waits twice at a time.
func (f *jsonProfile) sums(t *testing.T) {
	t.Helper()
	until := map[int]time.Time{}
	for i := range f.Waits {
		w := &f.Waits[i]
		thread := f.Stacks[w.Stack].Thread
		if w.Start.Add(time.Duration(slack)).Before(until[thread]) {
			t.Errorf("thread %d waits twice at %v", f.Threads[thread].ID, w.Start)
		}
		until[thread] = w.Start.Add(time.Duration(w.NS))
	}
}

// inOrder reports whether want is in names, in this order, possibly with others between.
func inOrder(names, want []string) bool {
	for _, n := range names {
		if len(want) > 0 && (n == want[0] || strings.HasPrefix(n, want[0]+"<") ||
			strings.HasPrefix(n, want[0]+"[")) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// allocated compares a recording with the allocations that a program lists, in methods of a class with
// certain methods below.
func (f *jsonProfile) allocated(t *testing.T, truth, class string, below ...string) {
	t.Helper()
	// The runtime writes nested types without the enclosing type.
	types := map[string]string{"AllocateArrays": "System.Byte[]", "AllocateNodes": "Node",
		"AllocateLarge": "System.Double[]"}
	thrown := map[string][2]string{"Fault": {"Fault", "even"},
		"InvalidOperationException": {"System.InvalidOperationException", "odd"}}
	kinds := 0
	for line := range strings.Lines(truth) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		want, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		kinds++
		got := int64(0)
		for i := range f.Stacks {
			s := &f.Stacks[i]
			switch x, exception := thrown[name]; {
			case exception && s.Event == "exception" && s.Type == x[0] && s.Message == x[1] &&
				inOrder(f.stackNames(i), []string{class + ".Throw", class + ".Exceptions"}):
				got += s.Count
			case !exception && s.Event == "allocation" && s.Type == types[name] &&
				inOrder(f.stackNames(i), append([]string{class + "." + name}, below...)):
				got += s.Sum
			}
		}
		_, exact := thrown[name]
		if lost := f.Counters["event_missed"]; exact && lost > 0 && got < want {
			t.Logf("%s: %d events are lost", name, lost)
			got = min(want, got+lost)
		}
		near := !exact && got >= want*7/10 && got <= want*13/10
		expect.Figures(t, got == want || near, "%s: %d, the program says %d", name, got, want)
	}
	expect.True(t, kinds >= 2, "the program reports fewer than two kinds of events: %s", truth)
}

// everything: a recording of all kinds has Waits.cs's allocations and exceptions, samples of running and
// waiting threads, and a separate sum for each kind.
func (f *jsonProfile) everything(t *testing.T, truth string) {
	t.Helper()
	f.allocated(t, truth, "Waits", "Waits.RunMemory", "Waits.Run", "Waits.Main")
	var cpu, wall int64
	for i := range f.Stacks {
		cpu, wall = cpu+f.Stacks[i].CPU, wall+f.Stacks[i].Wall
	}
	kinds := map[string]bool{}
	for _, e := range f.Recording.Events {
		kinds[e.Event] = e.Count > 0
	}
	expect.Figures(t, f.Samples != 0 && cpu != 0 && wall > cpu && kinds["wait"] && kinds["lock"] &&
		kinds["allocation"] && kinds["exception"], "%d samples, %v on processors of %v, events %+v",
		f.Samples, time.Duration(cpu), time.Duration(wall), f.Recording.Events)
}

// Some threads of the program wait without end. For each, the native frames in its samples and in its event
// have the same addresses as in gdb.
func TestEventsGDB(t *testing.T) { eachRuntime(t, eventsGDB) }

func eventsGDB(t *testing.T, runtime string) {
	p, _ := waiting(t, "ready", on(t, runtime, "Waits", "blocked", "pause")...)
	pid := p.pid
	file := filepath.Join(tempdir.New(t), "out.json")
	stop := attachEvents(t, p, file, "wall,waits,locks")
	p.say("go")
	p.until("done")
	time.Sleep(500 * time.Millisecond) // samples of the waiting threads
	stop()
	theirs := gdb.Stacks(t, pid)
	p.say("end")
	f := readJSONProfile(t, file)
	threads, frames := 0, 0
	for thread := range f.Threads {
		tid := f.Threads[thread].ID
		event := f.leaves(thread, func(s *jsonStack) bool { return s.Open })
		if len(event) == 0 {
			continue // the runtime reports no event for its wait
		}
		sample := f.leaves(thread, func(s *jsonStack) bool { return s.Event == "" })
		for what, own := range map[string][]uint64{"sample": sample, "event": event} {
			if n := len(own); n == 0 || n > len(theirs[tid]) || !slices.Equal(own, theirs[tid][:n]) {
				t.Errorf("thread %d: its %s is %#x\ngdb has %#x", tid, what, own, theirs[tid])
			}
			frames += len(own)
		}
		threads++
	}
	const ways = 11 // one thread for each way to wait, and the owner for which two wait
	expect.Figures(t, threads >= ways,
		"%d native frames of %d threads that wait, of samples and events, are gdb's", frames, threads)
}

// leaves are the addresses of the native frames above the first managed one, in the thread's stack with the
// longest time among those meant selects. For a caller, a file has the address of the byte before gdb's,
// which is within the call.
func (f *jsonProfile) leaves(thread int, meant func(s *jsonStack) bool) (out []uint64) {
	var best *jsonStack
	for i := range f.Stacks {
		if s := &f.Stacks[i]; s.Thread == thread && meant(s) &&
			(best == nil || s.Wall+s.Sum > best.Wall+best.Sum) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	for _, k := range best.Frames {
		if c := f.Frames[k].Class; c == "kernel" {
			continue // gdb sees no frame of it
		} else if c == "managed" || c == "stub" {
			break
		}
		addr, _ := strconv.ParseUint(f.Frames[k].Addr, 0, 64)
		if len(out) > 0 {
			addr++
		}
		out = append(out, addr)
	}
	return out
}

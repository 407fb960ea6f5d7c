package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/gdb"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// For every thread that waits for ever, the native frames of its samples and of its event in a recording are
// those that gdb sees, address by address.
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
	t.Logf("%d native frames of %d threads that wait, of samples and events, are gdb's", frames, threads)
	if threads < 11 { // one for each way to wait, and the owner for which two wait
		t.Errorf("only %d threads were compared", threads)
	}
}

// leaves are the addresses of the native frames above the first managed one, in the thread's stack with the
// longest time among those meant selects. For a caller, a file has the address of the byte before gdb's,
// which is within the call.
func (f *jsonProfile) leaves(thread int, meant func(s *jsonStack) bool) (out []uint64) {
	var best *jsonStack
	for i := range f.Stacks {
		if s := &f.Stacks[i]; s.Thread == thread && meant(s) && (best == nil || s.Wall+s.Sum > best.Wall+best.Sum) {
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

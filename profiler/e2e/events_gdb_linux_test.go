package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/testkit/gdb"
	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

// Of every thread that waits for ever, the native frames that the process itself has
// recorded are those that gdb sees, address by address: of its samples all, and of its
// event, which comes before the thread sleeps, all but the one that raised it. What the
// wait calls from there on is of gdb only.
func TestEventsGDB(t *testing.T) { eachRuntime(t, "Waits", eventsGDB) }

func eventsGDB(t *testing.T, program []string) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	p := startPaused(t, append(program, "blocked", "pause")...)
	pid := p.cmd.Process.Pid
	file := filepath.Join(tempdir.New(t), "out.json")
	stop := attachEvents(t, pid, file, "wall,waits,locks")
	p.say("go")
	p.until("done")
	time.Sleep(500 * time.Millisecond) // samples of those that wait
	stop()
	theirs := gdb.Stacks(t, pid)
	p.say("end")
	f := readEvents(t, file)
	var sampled, raised nativeCount
	for thread := range f.Threads {
		tid := f.Threads[thread].ID
		event := f.leaves(thread, func(s *eventsStack) bool { return s.Open })
		sample := f.leaves(thread, func(s *eventsStack) bool { return s.Event == "" })
		if len(event) == 0 { // the thread waits for nothing that the runtime tells of
			continue
		}
		if len(sample) == 0 {
			t.Errorf("thread %d waits and has no sample", tid)
			continue
		}
		if at := sampled.take(sample, theirs[tid]); at != 0 {
			t.Errorf("thread %d: its sample is %#x\ngdb has %#x", tid, sample, theirs[tid])
		}
		if at := raised.take(event[1:], theirs[tid]); at < 1 || gap(event[0], theirs[tid][at-1]) > largest {
			t.Errorf("thread %d: its event is %#x\ngdb has %#x", tid, event, theirs[tid])
		}
	}
	t.Logf("%d threads; native frames that are gdb's: %d of their samples, %d of their events", sampled.threads, sampled.frames, raised.frames)
	if sampled.threads < 11 { // one for each way to wait, and the holder of what two wait for
		t.Errorf("only %d threads were compared", sampled.threads)
	}
}

// largest is more than any function of the runtime that waits.
const largest = 1 << 13

func gap(a, b uint64) uint64 { return max(a, b) - min(a, b) }

type nativeCount struct{ threads, frames int }

// take counts frames that are among others, in a row, and says where; -1 if they are not.
func (n *nativeCount) take(own, others []uint64) int {
	for i := 0; i+len(own) <= len(others); i++ {
		if slices.Equal(others[i:i+len(own)], own) {
			n.threads++
			n.frames += len(own)
			return i
		}
	}
	return -1
}

// leaves are the addresses of the native frames above the first managed one, in the stack
// of a thread that stands for most time of those that are meant.
func (f *eventsFile) leaves(thread int, meant func(s *eventsStack) bool) (out []uint64) {
	var best *eventsStack
	for i := range f.Stacks {
		if s := &f.Stacks[i]; s.Thread == thread && meant(s) && (best == nil || s.Wall+s.Sum > best.Wall+best.Sum) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	for _, k := range best.Frames {
		if c := f.Frames[k].Class; c == "managed" || c == "stub" {
			break
		}
		addr, _ := strconv.ParseUint(f.Frames[k].Addr, 0, 64)
		out = append(out, addr)
	}
	return out
}

package paused

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/threadprog"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Threads that wait on a stack that they made themselves: the walk follows all stack switches back to the
// thread's start, without guesses.
func TestPausedSwitches(t *testing.T) {
	const threads = 2
	pid, _ := threadprog.Start(t, "switches", threads)
	look(t, pid)
	mem, _ := live.OpenProcess(pid)
	defer mem.Close()
	maps, _ := live.Maps(pid)
	paused := New(context.ArchAMD64, mem, live.NewLoader(pid), maps)
	whole, why := 0, ""
	for range 50 { // a thread may still be on its way to its wait
		if whole, why = switched(t, pid, paused); whole == threads {
			return
		}
	}
	t.Errorf("%d whole stacks of %d threads:%s", whole, threads, why)
}

// switched counts the threads whose complete stacks cross all three stacks, and returns what is wrong with
// the others.
func switched(t *testing.T, pid int, paused *Process) (whole int, why string) {
	t.Helper()
	tids, _ := live.Threads(pid)
	var th Thread
	live.StopEach(tids, func(tid int, r *context.Registers, s live.Stood) { th = paused.Read(uint32(tid), r, s) }, func(live.Stop) {
		s := paused.Walk(&th)
		var got []string
		for _, f := range slices.Backward(s.Frames) {
			if strings.HasPrefix(f.Name, "on_") {
				got = append(got, f.Name)
			}
			if f.Trust.Doubtful() {
				t.Errorf("%s by %v", f.Name, f.Trust)
			}
		}
		switch all := []string{"on_own", "on_stack", "on_high", "on_stack", "on_low", "on_stack", "on_higher"}; {
		case len(got) == 0 && s.Gap == merge.GapNone: // the main thread
		case s.Gap == merge.GapNone && slices.Equal(got, all):
			whole++
		default:
			why += fmt.Sprintf("\ngap %v at %#x: %v\n%+v", s.Gap, s.At, got, s.Frames)
		}
	})
	return whole, why
}

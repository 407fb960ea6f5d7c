package agent

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/merge"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
)

// A requested round gives the same stack as the stream, with names, and buffers nothing for a stream without
// a reader.
func TestOnce(t *testing.T) {
	world := fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native)
	id := world.Capture.Thread.ID
	for _, c := range []struct {
		name   string
		thread clr.ThreadID
		known  int
		stacks int
	}{{"all", 0, 1, 1}, {"the one", id, 1, 1}, {"one that is not there", id + 1, 0, 0}} {
		t.Run("runtime/"+c.name, func(t *testing.T) {
			f := &fake{world: world, rounds: 99}
			testOnce(t, New(f, Config{Slots: 4}, nil), c.thread, c.known, c.stacks)
			if f.unpinned != 0 {
				t.Errorf("%d names asked for while FunctionIDs could die", f.unpinned)
			}
		})
		t.Run("threads/"+c.name, func(t *testing.T) {
			f := &fakeThreads{fake: fake{world: world, rounds: 99}, primes: 1}
			testOnce(t, NewThreads(f, Config{Slots: 4}, nil), c.thread, c.known, c.stacks)
			if f.merged != 0 || f.suspended != 0 {
				t.Errorf("%d names asked for while a thread stood still, %d left so", f.merged, f.suspended)
			}
		})
	}
}

func testOnce(t *testing.T, a *Agent, thread clr.ThreadID, known, stacks int) {
	t.Helper()
	for n := range 3 {
		got := 0
		round := a.Once(thread, func(s *Stack) {
			got++
			if s.Merged.Gap != merge.GapNone || len(s.Frames) != 4 || s.Name != "worker" || s.Table == nil {
				t.Errorf("gap %v, %d frames, thread %q", s.Merged.Gap, len(s.Frames), s.Name)
			}
			if name, module := a.Name(s.Frames[2].Function); name == "" || module != "/app/t.dll" {
				t.Errorf("the method is %q of %q", name, module)
			}
		})
		if got != stacks || round.Known != known || round.Refused != "" || round.Suspensions != uint64(stacks*(n+1)) {
			t.Errorf("%d stacks, %+v", got, round)
		}
	}
	if a.stream.Out.Len() != 0 || a.use != nil {
		t.Errorf("%d bytes are left for nobody", a.stream.Out.Len())
	}
}

package snapshot

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/seed"
)

// changing is windows with a loader that counts changes.
type changing struct {
	windows
	loads []uint64 // one per Context; the last repeats
}

func (w *changing) Context(slot int, c *clr.Capture) bool {
	c.Loads = w.loads[0]
	if len(w.loads) > 1 {
		w.loads = w.loads[1:]
	}
	return w.windows.Context(slot, c)
}

// TestStale: a thread that was suspended while the modules differ from the table is not walked, by seedwalk
// or the CLR, and is resumed at once.
func TestStale(t *testing.T) {
	for _, c := range []struct {
		name   string
		loads  []uint64
		want   string
		advice Advice
		tries  int
	}{
		{"the same modules", []uint64{7}, "suspend, context, snapshot seeded=true, resume", AdviceComplete, 1},
		{"nobody counts", []uint64{0}, "suspend, context, snapshot seeded=true, resume", AdviceComplete, 1},
		{"one more", []uint64{8}, "suspend, context, resume", AdviceStale, 1},
		{"between two tries", []uint64{7, 9}, "suspend, context, snapshot seeded=true, resume, pause 1000000, suspend, context, resume", AdviceStale, 2},
	} {
		rt := &changing{windows{frames: 1, results: results(0)}, c.loads}
		if c.tries == 2 {
			rt.results = results(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)
		}
		s := NewThreads(rt, says(seed.Found))
		s.Prime(threads(1))
		s.Loads, rt.log = 7, nil
		o := s.Sample(threads(1)[0])
		if got := strings.Join(rt.log, ", "); got != c.want || o.Advice != c.advice || o.Tries != c.tries {
			t.Errorf("%s: advice %v after %d tries, calls: %s", c.name, o.Advice, o.Tries, got)
		}
		if o.Each[o.Tries-1].Captured != (c.advice == AdviceComplete) {
			t.Errorf("%s: %+v", c.name, o.Each[o.Tries-1])
		}
		if len(rt.bad) > 0 || rt.count != 0 || rt.claimed != 0 {
			t.Errorf("%s: suspend count %d, claims %d, bad %v", c.name, rt.count, rt.claimed, rt.bad)
		}
	}
}

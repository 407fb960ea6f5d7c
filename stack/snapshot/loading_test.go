package snapshot

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/seed"
)

// loads is a Seeder for a thread that is in the system's loader in its first calls.
type loads struct {
	verdict seed.Verdict
	looks   *int
}

func (l loads) Seed(c *clr.Capture) seed.Verdict {
	*l.looks--
	c.Loading = *l.looks >= 0
	return l.verdict
}

// breaks is windows whose watchdog resumes the thread at the first call of the CLR.
type breaks struct{ windows }

func (b *breaks) DoStackSnapshot(i int, c *clr.Capture) {
	b.windows.DoStackSnapshot(i, c)
	c.Broken = true
}

// The CLR is not called about a thread in the loader; it is called once the thread has left it.
func TestLoading(t *testing.T) {
	const look = "suspend, context, resume"
	for _, c := range []struct {
		name    string
		verdict seed.Verdict
		looks   int
		want    string
		advice  Advice
	}{
		{"not in it", seed.Found, 0, "suspend, context, snapshot seeded=true, resume", AdviceComplete},
		{"once", seed.Found, 1, look + ", pause 1000000, suspend, context, snapshot seeded=true, resume", AdviceComplete},
		{"without managed frames its walk is its stack", seed.NoManaged, 1, look, AdviceNativeOnly},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := windows{results: results(0), frames: 1}
			left := c.looks
			s := NewThreads(&rt, loads{c.verdict, &left})
			s.Prime(threads(1))
			rt.log = nil
			o := s.Sample(threads(1)[0])
			if got := strings.Join(rt.log, ", "); got != c.want || o.Advice != c.advice || len(rt.bad) > 0 {
				t.Errorf("calls: %s, advice %v, bad %v\nwant:  %s, %v", got, o.Advice, rt.bad, c.want, c.advice)
			}
		})
	}
}

// A capture of a thread that ran on is dropped, and the CLR is not called about it again in the same window.
func TestBroken(t *testing.T) {
	rt := breaks{windows{results: results(clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX), frames: 1}}
	s := NewThreads(&rt, says(seed.NotNeeded))
	s.Prime(threads(1))
	rt.log = nil
	o := s.Sample(threads(1)[0])
	if got := strings.Join(rt.log, ", "); got != "suspend, context, snapshot seeded=false, resume" || o.Advice != AdviceLost || o.Tries != 1 {
		t.Errorf("calls %s, advice %v, %d tries", got, o.Advice, o.Tries)
	}
}

//go:build amd64

package host

import (
	_ "embed"
	"flag"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/cworld"
)

//go:embed threads.c
var threadsC string

//go:embed platform.h
var platformH string

//go:embed shim.h
var shimH string

//go:embed hooks.h
var hooksH string

// claimWorld is a thread that ends, another that begins meanwhile, and a sampler that
// walks the first if sw_claim lets it. NEXT are the new thread's numbers, the CLR's and
// the system's: either may be the old one's, 1 and 11.
const claimWorld = `
#include "threads.c"

static const uint32_t next[] = {NEXT};
static int gone;

void sw_wait_while(uint64_t *word, uint64_t value) { (void)word; (void)value; sw_wait("the walk to end"); }
void sw_wake(uint64_t *word) { (void)word; }
void sw_sleep_us(unsigned us) { (void)us; sw_wait("the window to close"); }
int sw_sampler_gone(void) { return 0; }
uint64_t sw_thread_bind(struct sw_thread *t, uint32_t os_thread) { (void)t; return os_thread; }
void sw_thread_unbind(struct sw_thread *t) { (void)t; }
int sw_utf8(const uint16_t *in, uint32_t units, char *out, int room) { (void)in; (void)units; (void)room; *out = 0; return 0; }

static void begin(uint64_t thread_id, uint32_t tid)
{
	sw_thread_created(thread_id);
	sw_thread_assigned(thread_id, tid);
}

void world_reset(void)
{
	memset(threads, 0, sizeof threads[0] * 4);
	used = window_open = gone = 0;
	claimed = 0;
	begin(1, 11);
}

void world_thread(int i)
{
	switch (i) {
	case 0:
		if (!sw_claim(1, 11))
			return;
		sw_point("DoStackSnapshot");
		if (gone)
			sw_fault("DoStackSnapshot of a thread that is gone: the CLR ends the process with 8013135e");
		sw_release();
		return;
	case 1:
		sw_thread_destroyed(1);
		sw_point("the CLR forgets the thread");
		gone = 1;
		if (next[0] == 1) /* the CLR's number is a place in memory, free only now */
			begin(next[0], next[1]);
		return;
	case 2:
		if (next[0] != 1)
			begin(next[0], next[1]);
		return;
	}
}
`

var claimPreemptions = flag.Int("claim", 2, "preemptions of TestClaimOrder: 3 take a minute a world")

func exploreClaim(t *testing.T, source, next string) sched.Report {
	t.Helper()
	p := cworld.Start(t, map[string]string{"threads.c": source, "platform.h": platformH, "shim.h": shimH, "hooks.h": hooksH,
		"world.c": strings.ReplaceAll(claimWorld, "NEXT", next)}, 3)
	return sched.Explore(sched.ExploreOptions{Options: sched.Options{Preemptions: *claimPreemptions, MaxSteps: 400}}, func(s *sched.World) {
		p.Reset()
		for i, name := range []string{"sampler", "old thread", "new thread"} {
			s.Go(name, func(a *sched.Actor) { p.Run(a, i) })
		}
	})
}

// sw_claim and ThreadDestroyed, the product's C as it stands, in every order of its
// atomics: no walk of a thread that is gone, and nobody waits for ever.
func TestClaimOrder(t *testing.T) {
	const read = "!__atomic_load_n(&t->dead, __ATOMIC_SEQ_CST) && __atomic_load_n(&t->tid, __ATOMIC_SEQ_CST) == tid"
	const old = "__atomic_load_n(&t->tid, __ATOMIC_SEQ_CST) == tid && !__atomic_load_n(&t->dead, __ATOMIC_SEQ_CST)"
	const again = " &&\n\t       __atomic_load_n(&t->thread_id, __ATOMIC_SEQ_CST) == thread_id"
	for _, c := range []struct {
		name, source, next string
		broken             bool
	}{
		{"as it is", threadsC, "2, 12", false},
		{"as it is, the system's number is used again", threadsC, "2, 11", false},
		{"as it is, the CLR's number is used again", threadsC, "1, 12", false},
		{"the id before dead", strings.Replace(threadsC, read, old, 1), "1, 12", true},
		{"without the last look", strings.Replace(threadsC, again, "", 1), "2, 11", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasPrefix(c.name, "as it is") != (c.source == threadsC) {
				t.Fatal("sw_thread_alive reads otherwise than this test knows")
			}
			rep := exploreClaim(t, c.source, c.next)
			t.Logf("%d interleavings, %d walk a thread that is gone, %d never end; at most %d steps", rep.Interleavings, rep.Faults, rep.Deadlocks+rep.StepLimits, rep.MaxDepth)
			if rep.Faults > 0 != c.broken || rep.Deadlocks+rep.StepLimits > 0 || !rep.Exhausted {
				first := ""
				if rep.First != nil {
					first = rep.First.Fault + "\n" + rep.First.Timeline()
				}
				t.Errorf("want broken %v: %s", c.broken, first)
			}
		})
	}
}

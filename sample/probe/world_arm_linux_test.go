//go:build amd64

package probe

import (
	"flag"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/cworld"
)

// armWorld is a thread that takes the signal late which asks it to make its timer, while
// the tool dies, or has the recording end. The kernel's timers are counted.
const armWorld = `
#include "local.h"

enum { TIMERS = 4 };
static int alive[TIMERS], made;

/* kernel is the system calls of timers; all others are the real ones. */
static long kernel(long n, long a, long b, long c)
{
	(void)b;
	switch (n) {
	case NR_timer_create: {
		int id = made;
		if (id == TIMERS)
			return -11;
		made = id + 1;
		*(int32_t *)c = id;
		__atomic_store_n(&alive[id], 1, __ATOMIC_RELEASE);
		return 0;
	}
	case NR_timer_delete:
		if (a < 0 || a >= TIMERS || !alive[a])
			sw_fault("a timer is deleted that is not there");
		else
			__atomic_store_n(&alive[a], 0, __ATOMIC_RELEASE);
		return 0;
	case NR_timer_settime:
		return 0;
	}
	return sys6(n, a, b, c, 0, 0, 0);
}

static long kernel6(long n, long a, long b, long c, long d, long e, long f)
{
	return n == NR_timer_settime ? 0 : sys6(n, a, b, c, d, e, f);
}

#define sys3 kernel
#define sys6 kernel6
#include "handler.c"

static char file[SW_BEFORE_RING + SW_RING_SIZE] __attribute__((aligned(4096)));

void sw_put_back(struct sw_header *h) { __atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE); }
uint64_t sw_current(void) { return 0; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 0; }

void world_reset(void)
{
	sw_shared = (struct sw_header *)file;
	__builtin_memset(file, 0, SW_HEADER_SIZE + 2 * SW_SLOT_SIZE);
	__builtin_memset(file + SW_BEFORE_RING, 0, 1 << 16);
	for (int i = 0; i < TIMERS; i++)
		alive[i] = 0;
	made = 0;
	struct sw_header *h = sw_shared;
	h->tag = 0x5eed;
	h->timer_signal = SIGURG;
	h->period = 1000000;
	h->stale = 1;
	h->heartbeat = ~0ull;
}

static void deliver(int i, int code)
{
	struct info si = {.code = code, .value = (uint64_t)sw_shared->tag << 32 | (uint64_t)i};
	struct frame uc = {.alt_size = 0};
	sw_handler(SIGURG, &si, &uc);
}

/* 0 takes its signal late; 1 has a timer, which runs out behind the tool's death, or is
 * asked to end the recording; 2 looks at what is there in the end. */
void world_thread(int i)
{
	struct sw_header *h = sw_shared;
	struct sw_slot *s = slots(h) + i;
	if (i == 2) {
		for (int k = 0; k < made; k++)
			if (alive[k])
				sw_fault("a timer is there, and nobody who would end it");
		if (h->timers)
			sw_fault("timers are counted that are gone");
		return;
	}
	s->tid = (uint32_t)sys3(NR_gettid, 0, 0, 0);
	if (i == 0) {
		s->op = SW_OP_ARM;
		s->ask = 1;
		deliver(0, SI_QUEUE);
	} else if (ENDS) {
		s->op = SW_OP_LEAVE;
		s->ask = 1;
		deliver(1, SI_QUEUE);
	} else {
		arm(h, s);
		__atomic_store_n(&h->heartbeat, 1, __ATOMIC_RELAXED);
		deliver(1, SI_TIMER);
	}
}
`

var armPreemptions = flag.Int("arm", 1, "preemptions of TestArmWorld; 2 take five seconds")

// A timer that is made while the tool dies, or while the recording ends, does not stay:
// the handler as it stands, under every order of its atomics.
func TestArmWorld(t *testing.T) {
	for _, c := range []struct{ name, ends string }{{"the tool dies", "0"}, {"the recording ends", "1"}} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			few := strings.Replace(handlerC, "i < SW_SLOTS", "i < 2", 1)
			p := cworld.Start(t, map[string]string{"handler.c": few, "local.h": localH, "probe.h": probeH, "sys.h": sysH, "sys_amd64.h": sysAMD64H,
				"world.c": strings.Replace(armWorld, "ENDS", c.ends, 1)}, 3)
			rep := sched.Explore(sched.ExploreOptions{StopAtFirst: true, Options: sched.Options{Preemptions: *armPreemptions, MaxSteps: 300}}, func(s *sched.World) {
				p.Reset()
				late := s.Go("late", func(a *sched.Actor) { p.Run(a, 0) })
				other := s.Go("other", func(a *sched.Actor) { p.Run(a, 1) })
				s.Go("end", func(a *sched.Actor) {
					a.Join(late)
					a.Join(other)
					p.Run(a, 2)
				})
			})
			t.Logf("%d interleavings, at most %d steps", rep.Interleavings, rep.MaxDepth)
			if rep.First != nil {
				t.Fatalf("%s\n%s", rep.First.Fault, rep.First.Timeline())
			}
			if !rep.Exhausted || rep.Interleavings < 10 {
				t.Errorf("%d interleavings, not all", rep.Interleavings)
			}
		})
	}
}

//go:build amd64

package probe

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/cworld"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

//go:embed src/handler.c
var handlerC string

//go:embed src/local.h
var localH string

//go:embed src/probe.h
var probeH string

//go:embed src/sys.h
var sysH string

//go:embed src/sys_amd64.h
var sysAMD64H string

// ringWorld runs the probe's handler as the kernel does, on threads that are asked for samples. All registers
// and stack bytes of a thread have one known value.
const ringWorld = `
#include "handler.c"

enum { THREADS = 2, SAMPLES = 4, LARGE = SW_MAX_STACK, SMALL = 256, FILE_AT = 3 + THREADS + 1 };

static uint8_t stacks[THREADS][LARGE + 4096] __attribute__((aligned(4096)));
static uint32_t plan[4]; /* as the test writes it into the slots: bytes, samples, kind */

void sw_put_back(struct sw_header *h) { (void)h; }
uint64_t sw_current(void) { return 0; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 0; }
void sw_restorer(void) {}
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out) { (void)h, (void)s, (void)regs, (void)stack, (void)size, (void)out; }

static void map(void)
{
	uint64_t before = SW_BEFORE_RING, all = before + 2 * SW_RING_SIZE;
	char *at = (char *)sys6(NR_mmap, 0, (long)all, 0, 0x22, -1, 0);
	sys6(NR_mmap, P(at), (long)(before + SW_RING_SIZE), 3, 0x11, FILE_AT, 0);
	sys6(NR_mmap, P(at + before + SW_RING_SIZE), SW_RING_SIZE, 3, 0x11, FILE_AT, (long)before);
	sw_shared = (struct sw_header *)at;
}

void world_reset(void)
{
	if (!sw_shared)
		map();
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < LARGE + 4096 && !stacks[i][LARGE]; k++)
			stacks[i][k] = (uint8_t)(i + 1);
	__builtin_memcpy(plan, (char *)sw_shared + SW_HEADER_SIZE - sizeof plan, sizeof plan);
}

/* Thread i is signalled as often as is planned: each time the tool has asked, or, of
 * kind 1, its timer has run out. */
void world_thread(int i)
{
	uint32_t want = plan[0], n = plan[1], kind = plan[2];
	if (i >= THREADS)
		return;
	struct sw_slot *s = slots(sw_shared) + i;
	s->tid = (uint32_t)sys3(NR_gettid, 0, 0, 0);
	s->low = (uint64_t)stacks[i];
	s->high = s->low + SW_RED_ZONE + want;
	s->op = SW_OP_SAMPLE;
	s->timer = kind ? 77 : 0;
	for (uint32_t k = 0; k < n; k++) {
		struct info si = {.code = kind ? SI_TIMER : SI_QUEUE, .value = (uint64_t)sw_shared->tag << 32 | (uint64_t)i};
		struct frame uc = {.alt_size = 0};
		for (int r = 0; r < SW_REGS; r++)
			uc.regs[r] = (uint64_t)(i + 1);
		uc.regs[REG_SP] = s->low + SW_RED_ZONE;
		if (!kind)
			s->ask++;
		sw_handler(SIGURG, &si, &uc);
	}
}
`

var ringPreemptions = flag.Int("ring", 1, "preemptions of TestRingWorld; 2 take a minute")

// plan is what the threads of a world do.
type plan struct {
	at      uint64 // where the ring begins
	stack   uint32 // bytes copied
	samples uint32 // samples of each thread
	timer   bool   // the samples come from timers
	stale   bool   // the tool's last heartbeat is old
	dies    int    // step at which thread 0 is interrupted forever; 0 = never
	reads   int    // reads by the tool while they run
}

// ring is the file, and its readers' view of it.
type ring struct {
	plan
	file *File
	c    *cworld.Program
	got  map[int]uint32 // records by thread
	bad  string

	drops uint64 // over all runs
}

func startRing(t *testing.T) *ring {
	fd := must.Get(unix.MemfdCreate("ring", unix.MFD_CLOEXEC))(t)
	f := os.NewFile(uintptr(fd), "ring")
	t.Cleanup(func() { f.Close() })
	must.Do(t, f.Truncate(FullSize))
	head := make([]byte, unsafe.Sizeof(header{}))
	binary.LittleEndian.PutUint64(head, Magic)
	binary.LittleEndian.PutUint32(head[8:], Version)
	binary.LittleEndian.PutUint32(head[unsafe.Offsetof(header{}.arch):], uint32(context.ArchAMD64))
	_, err := f.WriteAt(head, 0)
	must.Do(t, err)
	file := must.Get(Open(fd, os.Getpid()))(t)
	t.Cleanup(func() { file.Close() })
	const all = "i < SW_SLOTS" // each iteration is a step
	must.Equal(t, strings.Count(handlerC, all), 1, "the handler's loops are others than this test knows")
	few := strings.Replace(handlerC, all, "i < 2", 1)
	c := cworld.Start(t, map[string]string{"handler.c": few, "local.h": localH, "probe.h": probeH,
		"sys.h": sysH, "sys_amd64.h": sysAMD64H, "world.c": ringWorld}, 3, f)
	return &ring{file: file, c: c}
}

// reset restores the file and the world before a run.
func (r *ring) reset(p plan) {
	f := r.file
	r.plan, r.got, r.bad = p, map[int]uint32{}, ""
	*f.h = header{magic: Magic, version: Version, tag: 0x5eed, head: p.at, tail: p.at, stale: 1 << 62}
	clear(f.ring[:4<<10])
	clear(f.ring[len(f.ring)-4<<10:])
	for off := uint64(0); p.at >= RingSize && off < 4<<10; off += align { // contents from a lap before
		was := (*record)(unsafe.Pointer(&f.ring[(p.at+off)%RingSize]))
		was.commit, was.claim, was.size = (p.at-RingSize+off)|1, (p.at-RingSize+off)|2, align
	}
	f.tail, f.freed, f.done, f.Stuck, f.Bad = p.at, p.at, map[uint64]uint64{}, 0, 0
	f.Beat()
	if p.stale {
		f.h.stale, f.h.heartbeat = 1, 1
	}
	kind := uint32(0)
	if p.timer {
		kind, f.h.timers = 1, 2
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&f.data[HeaderSize-16])), 4)
	words[0], words[1], words[2] = p.stack, p.samples, kind
	r.c.Reset()
}

// take checks a record: everything in it belongs to its thread.
func (r *ring) take(rec *Record) {
	want := byte(rec.Slot + 1)
	switch {
	case rec.Slot > 1:
		r.bad = fmt.Sprintf("a record of slot %d", rec.Slot)
	case len(rec.Stack) != int(r.stack)+128:
		r.bad = fmt.Sprintf("a stack of %d bytes, want %d", len(rec.Stack), r.stack+128)
	case bytes.Count(rec.Stack, []byte{want}) != len(rec.Stack):
		r.bad = fmt.Sprintf("the stack of thread %d is another's, or not whole", rec.Slot)
	case rec.Regs[0] != uint64(want) || rec.Weight != 1 || rec.Flags != 0:
		r.bad = fmt.Sprintf("registers %#x, weight %d, flags %d", rec.Regs[0], rec.Weight, rec.Flags)
	}
	r.got[rec.Slot]++
}

// explore tries every order of the threads' atomics and the reader's steps.
func (r *ring) explore(p plan, preemptions int) sched.Report {
	return sched.Explore(sched.ExploreOptions{StopAtFirst: true,
		Options: sched.Options{Preemptions: preemptions, MaxSteps: 600}}, func(s *sched.World) {
		r.reset(p)
		var threads []*sched.Actor
		for i := range 2 {
			threads = append(threads, s.Go(fmt.Sprintf("thread %d", i), func(a *sched.Actor) {
				if i == 0 && p.dies > 0 {
					r.c.RunTo(a, i, p.dies)
				} else {
					r.c.Run(a, i)
				}
			}))
		}
		s.Go("tool", func(a *sched.Actor) {
			r.file.step = func(what string) {
				a.Yield("%s", what)
				r.c.Step()
			}
			for range p.reads {
				r.file.Read(r.take)
				r.judge(a, false)
			}
			for _, t := range threads {
				a.Join(t)
			}
			r.file.step = nil
			r.file.Read(r.take)
			r.judge(a, true)
		})
	})
}

// judge compares the records with the samples.
func (r *ring) judge(a *sched.Actor, over bool) {
	h := r.file.h
	sum := uint64(r.got[0]) + uint64(r.got[1])
	want := uint64(2 * r.samples)
	switch {
	case r.bad != "":
		a.Fault("%s", r.bad)
	case r.file.Bad > 0:
		a.Fault("%d places without a record", r.file.Bad)
	case h.head-h.tail > RingSize:
		a.Fault("%d bytes are claimed of %d", h.head-h.tail, RingSize)
	case r.got[0] > r.samples || r.got[1] > r.samples:
		a.Fault("a record was read twice")
	case !over:
	case r.stale:
		if sum != 0 || h.stopped == 0 || r.file.slots[0].timer != 0 || r.file.slots[1].timer != 0 {
			a.Fault("%d samples for a tool that is gone, %d timers stopped", sum, h.stopped)
		}
	case r.dies > 0:
		if r.got[1]+uint32(h.dropped) < r.samples {
			a.Fault("thread 1 had %d samples of %d, %d dropped: it waited for one that is interrupted",
				r.got[1], r.samples, h.dropped)
		}
	case r.count(h.dropped)+sum != want:
		a.Fault("%d samples and %d dropped of %d", sum, h.dropped, want)
	case h.head != h.tail:
		a.Fault("%d bytes are not given back", h.head-h.tail)
	}
}

func (r *ring) count(dropped uint64) uint64 {
	r.drops += dropped
	return dropped
}

var ringPlans = []struct {
	name string
	plan
	dropped bool // some order drops a sample
}{
	{"two threads", plan{at: 0, stack: 256, samples: 1, reads: 1}, false},
	{"round the end", plan{at: 7*RingSize - 448, stack: 256, samples: 1, reads: 1}, false},
	{"full", plan{at: 3 * RingSize, stack: 1<<20 - 256, samples: 2, reads: 1}, true},
	{"interrupted for ever", plan{at: RingSize - 1024, stack: 256, samples: 1, reads: 1, dies: 4}, false},
	{"interrupted before its claim is told",
		plan{at: RingSize, stack: 256, samples: 1, reads: 1, dies: 5}, false},
	{"timers", plan{at: 0, stack: 256, samples: 1, timer: true, reads: 1}, false},
	{"the tool is gone", plan{at: 0, stack: 256, samples: 1, timer: true, stale: true}, false},
}

// The probe's handler and the tool's reader, in C and Go as they are, under every order of the C atomics and
// the reader's steps: each sample is read once and complete, or is counted as dropped; no thread waits; and
// nothing continues after the tool's death.
func TestRingWorld(t *testing.T) {
	r := startRing(t)
	for _, c := range ringPlans {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			r.drops = 0
			rep := r.explore(c.plan, *ringPreemptions)
			t.Logf("%d interleavings, at most %d steps", rep.Interleavings, rep.MaxDepth)
			if rep.First != nil {
				t.Fatalf("%s\n%s", rep.First.Fault, rep.First.Timeline())
			}
			expect.True(t, rep.Exhausted && rep.Interleavings >= 2 && r.drops > 0 == c.dropped,
				"%d interleavings, not all; %d samples dropped", rep.Interleavings, r.drops)
		})
	}
}

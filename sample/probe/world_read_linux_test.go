//go:build amd64

package probe

import (
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/cworld"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

//go:embed src/read.c
var readC string

//go:embed src/read.h
var readH string

// readWorld has threads that take signals late or early while the tool requests reads, gives them up, and
// requests again. Thread 2 reports the addresses of the words to read.
const readWorld = `
#include "local.h"
#include "read.h"

static __thread uint32_t me;

/* kernel lets others run between the question and the copy, and the copy and the answer. */
static long kernel(long n, long a, long b, long c, long d, long e, long f)
{
	if (n != NR_process_vm_readv)
		return sys6(n, a, b, c, d, e, f);
	uint64_t at = *(uint64_t *)b - (uint64_t)sw_shared - SW_BEFORE_RING - 2ul * SW_RING_SIZE;
	if (((struct sw_read *)((char *)sw_shared + SW_READ_AT + at / SW_READ_ROOM * SW_READ_SIZE))->tid != me)
		sw_fault("a thread answers that is not the one that is asked");
	sw_point("copy");
	long r = sys6(n, a, b, c, d, e, f);
	sw_point("copied");
	return r;
}

#define sys6 kernel
#include "read.c"
#undef sys6

enum { FILE_AT = 3 + 3, SIGNALS = 2, WORDS = 8, WORDS_AT = SW_HEADER_SIZE - 16 };
struct sw_header *sw_shared;
static uint64_t words[WORDS];

void world_reset(void)
{
	if (!sw_shared) {
		long ring = SW_BEFORE_RING + 2l * SW_RING_SIZE, rooms = SW_READS * SW_READ_ROOM;
		char *at = (char *)sys6(NR_mmap, 0, ring + rooms, 0, 0x22, -1, 0);
		sys6(NR_mmap, P(at), SW_HEADER_SIZE, 3, 0x11, FILE_AT, 0);
		sys6(NR_mmap, P(at + ring), rooms, 3, 0x11, FILE_AT, SW_BEFORE_RING + SW_RING_SIZE);
		sw_shared = (struct sw_header *)at;
	}
	for (int i = 0; i < WORDS; i++)
		words[i] = 0x5eed00 + (uint64_t)i;
	*(uint64_t *)((char *)sw_shared + WORDS_AT) = (uint64_t)words;
}

void world_thread(int i)
{
	me = (uint32_t)i + 1;
	struct info si = {.code = SI_QUEUE, .value = (uint64_t)sw_shared->tag << 32 | SW_READ_COOKIE};
	for (int k = 0; k < SIGNALS; k++)
		if (!sw_answer(sw_shared, &si, me))
			sw_fault("a signal for a read is taken for another");
}
`

var readPreemptions = flag.Int("read", 2, "preemptions of TestReadWorld; 3 take ten seconds")

// readPlan is what the threads of a world do.
type readPlan struct {
	name string
	dies int // step at which thread 0 is interrupted forever; 0 = never
}

// The protocol of reads, in C and Go as they are, under every order of the atomics on both sides: an answer
// belongs to its request, even if an earlier thread comes late; a thread that does not come back costs one
// request, and the next read is still answered.
func TestReadWorld(t *testing.T) {
	fd := must.Get(unix.MemfdCreate("reads", unix.MFD_CLOEXEC))(t)
	file := os.NewFile(uintptr(fd), "reads")
	defer file.Close()
	must.Do(t, file.Truncate(FullSize))
	head := make([]byte, unsafe.Sizeof(header{}))
	binary.LittleEndian.PutUint64(head, Magic)
	binary.LittleEndian.PutUint32(head[8:], Version)
	binary.LittleEndian.PutUint32(head[unsafe.Offsetof(header{}.arch):], uint32(context.ArchAMD64))
	_, err := file.WriteAt(head, 0)
	must.Do(t, err)
	f := must.Get(Open(fd, os.Getpid()))(t)
	defer f.Close()
	c := cworld.Start(t, map[string]string{"read.c": readC, "read.h": readH, "local.h": localH,
		"probe.h": probeH, "sys.h": sysH, "sys_amd64.h": sysAMD64H, "world.c": readWorld}, 3, file)
	for _, p := range []readPlan{{"two threads", 0}, {"interrupted before it takes", 3},
		{"interrupted as it has taken", 4}, {"interrupted before it copies", 5},
		{"interrupted before it is done", 7}} {
		t.Run(p.name, func(t *testing.T) {
			answers := map[Answer]int{}
			rep := sched.Explore(sched.ExploreOptions{StopAtFirst: true,
				Options: sched.Options{Preemptions: *readPreemptions, MaxSteps: 400}}, func(s *sched.World) {
				exploreReads(s, f, c, p, answers)
			})
			t.Logf("%d interleavings, at most %d steps; %d answered, %d given up", rep.Interleavings,
				rep.MaxDepth, answers[Whole], answers[Unanswered])
			if rep.First != nil {
				t.Fatalf("%s\n%s", rep.First.Fault, rep.First.Timeline())
			}
			expect.True(t, rep.Exhausted && answers[Whole] != 0 && answers[Unanswered] != 0,
				"not all, or no read was answered, or none was given up")
		})
	}
}

func exploreReads(s *sched.World, f *File, c *cworld.Program, p readPlan, answers map[Answer]int) {
	clear(f.data[readAt : readAt+readRequests*readSize])
	clear(f.data[FileSize : FileSize+64])
	clear(f.data[FileSize+readRoom : FileSize+readRoom+64])
	c.Reset()
	s.Go("tool", func(a *sched.Actor) {
		m := f.Memory(worldThreads{})
		clock := time.Unix(1, 0)
		m.now = func() time.Time { return clock }
		m.limit = 2 * firstWait
		m.send = func(Reader) error { return nil }
		m.wait = func(_ *uint32, _ uint32, limit time.Duration) { clock = clock.Add(limit) }
		m.step = func(what string) {
			a.Yield("%s", what)
			c.Step()
		}
		words := atomic.LoadUint64((*uint64)(unsafe.Pointer(&f.data[HeaderSize-16])))
		for i := range uint64(3) {
			var got [8]byte
			n, says := m.request(got[:], words+8*i, false)
			answers[says]++
			if word := binary.LittleEndian.Uint64(got[:]); says == Whole && (n != 8 || word != 0x5eed00+i) {
				a.Fault("read %d answers %#x", i, word)
			}
		}
	})
	for i := range 2 {
		s.Go(fmt.Sprintf("thread %d", i), func(a *sched.Actor) {
			if i == 0 && p.dies > 0 {
				c.RunTo(a, i, p.dies)
			} else {
				c.Run(a, i)
			}
		})
	}
}

// worldThreads are the threads of a world.
type worldThreads struct{}

func (worldThreads) Reader(n int) (Reader, bool) { return Reader{TID: uint32(n + 1)}, n < 2 }
func (worldThreads) Living() bool                { return true }

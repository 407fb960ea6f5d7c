//go:build amd64

package probe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// clockWorld runs the handler once for each line of input: the signal's code and value, the slot's clock, and
// the tool's request. It prints the records and the clock afterwards.
const clockWorld = `
#include <stdio.h>
#include "handler.c"

void sw_put_back(struct sw_header *h) { (void)h; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 0; }
void sw_restorer(void) {}
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out) { (void)h, (void)s, (void)regs, (void)stack, (void)size, (void)out; }

static char file[SW_BEFORE_RING + 2 * SW_RING_SIZE] __attribute__((aligned(4096)));
static uint8_t stack[4096];

static void run(int code, uint64_t value, uint32_t clock, uint32_t op, uint32_t place)
{
	struct sw_header *h = sw_shared = (struct sw_header *)file;
	uint32_t tid = own_tid();
	struct sw_slot *s = slots(h) + ((tid + place) & (SW_SLOTS - 1));
	__builtin_memset(file, 0, SW_HEADER_SIZE);
	h->tag = 0x5eed;
	h->stale = ~0ull;
	*s = (struct sw_slot){.tid = tid, .low = (uint64_t)stack, .high = (uint64_t)stack + sizeof stack, .clock = clock, .op = op, .ask = op != 0};
	struct info si = {.code = code, .value = code == SI_QUEUE ? (uint64_t)h->tag << 32 | (uint64_t)(s - slots(h)) : value};
	struct frame uc = {.regs = {[REG_SP] = (uint64_t)stack + 1024}};
	sw_handler(SIGURG, &si, &uc);
	printf("why");
	for (uint64_t at = 0; at < h->head; at += ((struct sw_record *)(ring(h) + at))->size)
		printf(" %d/%u", ((struct sw_record *)(ring(h) + at))->why, ((struct sw_record *)(ring(h) + at))->weight);
	s->tid = 0;
	printf(" clock %x strangers %lu asked %d\n", s->clock, (unsigned long)h->strangers, s->ask != s->answered);
}

int main(void)
{
	int code;
	unsigned long value;
	unsigned clock, op, place;
	while (scanf("%d %lx %x %u %u", &code, &value, &clock, &op, &place) == 5)
		run(code, value, clock, op, place);
}
`

// clockRun runs clockWorld on an input.
func clockRun(t *testing.T, in string) string {
	t.Helper()
	needs.Command(t, "gcc")
	dir := t.TempDir()
	for name, text := range map[string]string{"handler.c": handlerC, "local.h": localH, "probe.h": probeH,
		"sys.h": sysH, "sys_amd64.h": sysAMD64H, "main.c": clockWorld} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	build := exec.Command("gcc", "-O1", "-w", "-o", "world", "main.c")
	build.Dir = dir
	must.Run(t, build)
	run := exec.Command(filepath.Join(dir, "world"))
	run.Stdin = strings.NewReader(in)
	return must.Run(t, run)
}

var overflows = []struct {
	name      string
	code      int
	value     uint64
	clock, op uint32
	place     uint32
	want      string
}{
	{"an event's overflow", 1, 7, 8, 0, 0, "why 5/1 clock 8 strangers 0 asked 0"},
	{"the value's upper half is not ours", 1, 0xabcd<<32 | 7, 8, 0, 0, "why 5/1 clock 8 strangers 0 asked 0"},
	{"descriptor 0", 1, 0, 1, 0, 0, "why 5/1 clock 1 strangers 0 asked 0"},
	{"another descriptor", 1, 6, 8, 0, 0, "why clock 8 strangers 1 asked 0"},
	{"a thread without an event", 1, 7, 0, 0, 0, "why clock 0 strangers 1 asked 0"},
	{"a first sample in spite of thinning", 1, 7, 1<<clockBits | clockFirst | 8, 0, 0,
		"why 5/1 clock 100008 strangers 0 asked 0"},
	{"a first sample of another descriptor", 1, 6, clockFirst | 8, 0, 0, "why clock 80008 strangers 1 asked 0"},
	{"the largest descriptor, no event", 1, 0xffffffff, 0, 0, 0, "why clock 0 strangers 1 asked 0"},
	{"a socket's SIGURG", 0x80, 7, 8, 0, 0, "why clock 8 strangers 1 asked 0"},
	{"kill", 0, 7, 8, 0, 0, "why clock 8 strangers 1 asked 0"},
	{"the last place that is near", 1, 7, 8, 0, 63, "why 5/1 clock 8 strangers 0 asked 0"},
	{"a place too far", 1, 7, 8, 0, 64, "why clock 8 strangers 1 asked 0"},
	{"with the tool's question", 1, 7, 8, uint32(OpSample), 0, "why 5/1 1/1 clock 8 strangers 0 asked 0"},
	{"the tool's question alone", -1, 0, 8, uint32(OpSample), 0, "why 1/1 clock 8 strangers 0 asked 0"},
	{"the tool's clock", -1, 0, 0, uint32(OpClock), 0, "why 5/1 clock 0 strangers 0 asked 0"},
}

// The handler samples CPU time for an overflow of the thread's own event, and for nothing similar.
func TestOverflow(t *testing.T) {
	var in strings.Builder
	for _, c := range overflows {
		fmt.Fprintf(&in, "%d %x %x %d %d\n", c.code, c.value, c.clock, c.op, c.place)
	}
	lines := strings.Split(strings.TrimSpace(clockRun(t, in.String())), "\n")
	must.Equal(t, len(lines), len(overflows), lines)
	for i, c := range overflows {
		expect.Equal(t, lines[i], c.want, c.name)
	}
}

// A random part of a young thread's overflows become samples, as many as the slot's clock requires.
func TestThinning(t *testing.T) {
	const n, keep = 20000, 1024
	out := clockRun(t, strings.Repeat(fmt.Sprintf("1 7 %x 0 0\n", keep<<clockBits|8), n))
	kept := strings.Count(out, "why 5/1")
	all := strings.Count(out, "why")
	expect.True(t, all == n && kept >= 4600 && kept <= 5400 && !strings.Contains(out, "strangers 1"),
		"%d samples of %d overflows (%d), want a quarter", kept, n, all)
}

// The tool's side of a slot's clock.
func TestSlotClock(t *testing.T) {
	f := &File{slots: make([]slot, Slots), used: map[uint32]int32{}}
	i, err := f.Slot(3*Slots - 2)
	must.True(t, err == nil && f.Near(i), "slot %d: %v", i, err)
	for first, want := range map[bool]uint32{false: 3<<20 | 8, true: 3<<20 | 1<<19 | 8} {
		expect.True(t, f.SetClock(i, 7, 3, first) && f.slots[i].clock == want,
			"first %v: clock %#x, want %#x", first, f.slots[i].clock, want)
	}
	expect.True(t, !f.SetClock(i, 1<<19-1, 0, false) && !f.SetClock(i, 7, Thinning, false) &&
		f.SetClock(i, 1<<19-2, 0, false), "the bounds of descriptors and numbers")
	f.ClearClock(i)
	for k := range f.slots {
		f.slots[k].tid = 1
	}
	f.slots[(5+near-1)%Slots].tid = 0
	i, _ = f.Slot(5)
	expect.True(t, f.Near(i), "the last near place is not near")
	f.slots[(9+near)%Slots].tid = 0
	i, _ = f.Slot(9)
	expect.True(t, !f.Near(i), "a place behind the near ones is near")
}

// A slot gets its next thread only when the probe has ended its timer and no longer refers to it.
func TestReap(t *testing.T) {
	f := &File{reader: reader{h: &header{}}, slots: make([]slot, Slots), used: map[uint32]int32{}}
	i, err := f.Slot(7)
	f.slots[i] = slot{tid: 7, timer: 3, low: 0x1000, ask: 5}
	for _, step := range []struct {
		name          string
		do            func()
		tid, reaping  uint32
		listed, again uint32
	}{
		{"the thread ends", func() { f.Free(7) }, 7, 0, 0, 0},
		{"the probe is asked", func() { f.Reap() }, 7, 1, uint32(i) + 1, 0},
		{"the timer has ended, the list names it",
			func() { f.slots[i].timer = 0; f.Reap() }, 7, 1, uint32(i) + 1, 0},
		{"a handler still works on it", func() { f.h.reap[0] |= reaped; f.Reap() }, 7,
			1, (uint32(i) + 1) | reaped, 0},
		{"the list does not name it", func() { f.h.reap[0] = 0; f.Reap() }, 0, 1, 0, 0},
		{"the next thread", func() { _, err = f.Slot(7) }, 7, 1, 0, 0},
	} {
		step.do()
		if s := &f.slots[i]; s.tid != step.tid || f.h.reaping != step.reaping || f.h.reap[0] != step.listed ||
			f.h.reap[1] != step.again {
			t.Errorf("%s: thread %d, reaping %d, list %v", step.name, s.tid, f.h.reaping, f.h.reap[:2])
		}
	}
	if s := &f.slots[i]; err != nil || s.low != 0 || s.ask != 0 {
		t.Errorf("%v, the slot of an earlier thread: %+v", err, *s)
	}
	other, _ := f.Slot(9)
	f.Free(9)
	expect.True(t, f.slots[other].tid == 0, "a slot without a timer is not free at once")
}

// Timers sample at the requested rate or, if the kernel's tick is slower, at each tick. Every sample
// represents the same time, and the share of kept samples times that time equals the time between expiries.
func TestPlanTimers(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		period, tick int64
		want         TimerPlan
	}{
		{10 * ms, 4 * ms, TimerPlan{ms, 1638, 10 * ms}},
		{10 * ms, 10 * ms, TimerPlan{ms, Thinning, 10 * ms}},
		{10 * ms, ms, TimerPlan{ms, 409, 10 * ms}},
		{ms, 4 * ms, TimerPlan{ms, Thinning, 4 * ms}},
		{ms, ms, TimerPlan{ms, Thinning, ms}},
		{ms / 10, 4 * ms, TimerPlan{ms / 10, Thinning, 4 * ms}},
		{ms / 2, ms / 4, TimerPlan{ms / 2, Thinning, ms / 2}},
		{10000 * ms, 4 * ms, TimerPlan{ms, 1, 10000 * ms}},
	} {
		expect.Equal(t, PlanTimers(c.period, c.tick), c.want, "period %d, tick %d", c.period, c.tick)
	}
}

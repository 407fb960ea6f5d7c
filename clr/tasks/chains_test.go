package tasks

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// timerAt is the offset of the timer field in the objects of TestLimited.
const timerAt = 16

// awaited returns a task with a timer field, which holds an address if timed is true. next are the tasks that
// await it, and blocks are the objects on which threads block until it ends.
func awaited(name string, timed bool, next []int32, blocks ...uint64) *pending {
	data := make([]byte, timerAt+8)
	if timed {
		binary.LittleEndian.PutUint64(data[timerAt:], 0x1000)
	}
	return &pending{shape: &shape{kind: task, name: name, timer: timerAt},
		data: data, next: next, blocks: blocks}
}

// Sources that are linked in a circle are read once. A list of registrations that never ends is read as far
// as the bounds allow, in one source and in all.
func TestBoundsOfTokens(t *testing.T) {
	linked := map[uint64][]uint64{1: {2, 3}, 2: {1, 2}, 3: nil}
	visits := map[uint64]int{}
	reach([]uint64{1, 3}, func(at uint64) []uint64 {
		visits[at]++
		return linked[at]
	})
	expect.True(t, len(visits) == 3 && visits[1] == 1 && visits[2] == 1 && visits[3] == 1, "%v", visits)
	var k tokens
	read := 0
	circle := func(at uint64) (uint64, bool) { read++; return at, true }
	k.list(8, circle)
	expect.Equal(t, read, maxRegistrations)
	for range 2 * allRegistrations / maxRegistrations {
		k.list(8, circle)
	}
	expect.Equal(t, read, allRegistrations)
	k, read = tokens{}, 0
	k.list(8, func(uint64) (uint64, bool) { read++; return 0, read < 4 })
	expect.True(t, read == 4 && k.read == 3, "%d visits, %d registrations", read, k.read)
}

// A chain on which a thread blocks is limited if a timer ends one of its tasks.
func TestLimited(t *testing.T) {
	const waits = 0x70   // the object on which thread 5 blocks
	const byToken = 0x80 // an object of a wait that a token ends
	ended := awaited("Task.Delay", false, []int32{1})
	ended.addr = byToken
	noTimer := awaited("Task", true, nil, waits)
	noTimer.shape = &shape{kind: task, name: "Task"}
	for _, c := range []struct {
		name string
		all  []*pending
		want bool
	}{
		{"a delay with a timer", []*pending{awaited("Task.Delay", true, nil, waits)}, true},
		{"a delay whose timer is gone", []*pending{awaited("Task.Delay", false, nil, waits)}, false},
		{"a type without a timer", []*pending{noTimer}, false},
		{"an awaited delay", []*pending{awaited("Task.Delay", true, []int32{1}),
			awaited("App.Run", false, nil, waits)}, true},
		{"WaitAsync with a limit above a task",
			[]*pending{awaited("Task", false, []int32{1}),
				awaited("Task.WaitAsync", true, nil, waits)}, true},
		{"a task whose wait a token ends", []*pending{awaited("Task", false, nil, byToken)}, true},
		{"an awaited task that a token ends", []*pending{ended, awaited("App.Run", false, nil, waits)}, true},
		{"awaited without a limit",
			[]*pending{awaited("Task", false, []int32{1}), awaited("App.Run", false, nil, waits)}, false},
	} {
		for i, p := range c.all[1:] {
			p.below, p.addr = 1, uint64(0x200+i)
		}
		g := &graph{src: &Source{}, all: c.all, out: &Result{},
			stacks: map[uint64]uint32{waits: 5, byToken: 5}}
		g.tokens.ends = map[uint64]bool{byToken: true}
		g.chains()
		expect.True(t, len(g.out.Groups) == 1 && g.out.Groups[0].Blocks && g.out.Groups[0].Limited == c.want,
			"%s: %+v", c.name, g.out.Groups)
	}
}

// The first tasks of one blocked thread make one group each: only the one with a timer is limited.
func TestLimitedByOneOfTwo(t *testing.T) {
	const waits = 0x70
	g := &graph{src: &Source{}, out: &Result{}, stacks: map[uint64]uint32{waits: 5}, all: []*pending{
		awaited("Task.Delay", true, []int32{2}), awaited("Task", false, []int32{2}),
		awaited("Task.WhenAny", false, nil, waits)}}
	g.all[2].below = 2
	g.chains()
	must.Equal(t, len(g.out.Groups), 2, g.out.Groups)
	for _, group := range g.out.Groups {
		want := group.Chain[0] == "Task.Delay"
		expect.True(t, group.Limited == want && len(group.Threads) == 1 && group.Threads[0] == 5,
			"%+v", group)
	}
}

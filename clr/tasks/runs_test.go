package tasks

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// one is a memory with one word at any address.
type one uint64

func (m one) ReadAt(p []byte, addr uint64) bool { return m.ReadSome(p, addr) == len(p) }

func (m one) ReadSome(p []byte, addr uint64) int {
	binary.LittleEndian.PutUint64(p, uint64(m))
	return 8
}

// A thread waits for another one only if it is certain which thread waits, which one runs the task, and that
// nothing else ends the wait.
func TestEdges(t *testing.T) {
	const first, last, event = 0x100, 0x200, 0x300
	runs := func(method string, tids ...uint32) (out []claim) {
		for _, tid := range tids {
			s := &Stack{TID: tid, Size: 8, Data: binary.LittleEndian.AppendUint64(nil, first)}
			out = append(out, claim{s, method})
		}
		return out
	}
	for _, c := range []struct {
		name        string
		kind        kind // of the first task
		state       uint32
		runs, waits []claim
		between     kind // of the last task
		token       bool
		want        bool
	}{
		{"a task", task, stateInvoked, runs("", 5), runs("", 7), box, false, true},
		{"a box", box, 0, runs("App.Sum<T>", 5), runs("", 7), box, false, true},
		{"a task that waits for itself", task, stateInvoked, runs("", 7), runs("", 7), oneWay, false, true},
		{"two threads may run it", task, stateInvoked, runs("", 5, 6), runs("", 7), box, false, false},
		{"two threads may wait", task, stateInvoked, runs("", 5), runs("", 7, 8), box, false, false},
		{"no thread runs it", task, stateInvoked, nil, runs("", 7), box, false, false},
		{"no thread waits", task, stateInvoked, runs("", 5), nil, box, false, false},
		{"a task that has not begun", task, 0, runs("", 5), runs("", 7), box, false, false},
		{"another method", box, 0, runs("App.Other", 5), runs("", 7), box, false, false},
		{"a task in the frame of a method", task, stateInvoked, runs("App.Sum", 5), runs("", 7), box, false,
			false},
		{"Task.WhenAny", task, stateInvoked, runs("", 5), runs("", 7), combined, false, false},
		{"a token", task, stateInvoked, runs("", 5), runs("", 7), box, true, false},
	} {
		g := &graph{src: &Source{}, out: &Result{}, stacks: map[uint64]uint32{}}
		g.claims = claims{map[uint64][]claim{first: c.runs}, map[uint64][]claim{event: c.waits},
			map[uint32]bool{7: c.token}, map[Edge]bool{}}
		g.add(pending{addr: first, shape: &shape{kind: c.kind, name: "App.Sum<int>", flags: 8},
			state: c.state, next: []int32{1}})
		g.add(pending{addr: last, shape: &shape{kind: c.between, name: "App.Main", flags: 8}, below: 1,
			blocks: []uint64{event}})
		g.chains()
		var want []Edge
		if c.want {
			want = []Edge{{Waits: 7, Runs: c.runs[0].stack.TID, Task: first, Name: "App.Sum<int>"}}
		}
		expect.Slices(t, g.out.Edges, want, "%s", c.name)
	}
}

// In a running process, a stack must still have the address: a collection may have moved the object.
func TestStill(t *testing.T) {
	s := &Stack{Size: 16, Data: make([]byte, 24)}
	binary.LittleEndian.PutUint64(s.Data[8:], 0x100)
	binary.LittleEndian.PutUint64(s.Data[16:], 0x200) // a register
	for _, c := range []struct {
		name   string
		moves  bool
		word   uint64
		object uint64
		want   bool
	}{
		{"a core", false, 0, 0x100, true},
		{"unchanged", true, 0x100, 0x100, true},
		{"changed", true, 0x108, 0x100, false},
		{"only in a register", true, 0x200, 0x200, false},
	} {
		g := &graph{src: &Source{Memory: one(c.word), Moves: c.moves}}
		expect.Equal(t, g.still(s, c.object), c.want, "%s", c.name)
	}
}

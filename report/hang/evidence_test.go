package hang

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Threads that do the same have one line, and a thread that waits for several tasks has all of their chains.
func TestEvidence(t *testing.T) {
	p := &Process{Threads: []Thread{{TID: 9, Frames: inRead, Blocks: Input}}}
	for tid := range uint32(6) {
		p.Threads = append(p.Threads, Thread{TID: tid + 1, Name: "pool", Frames: inTask})
	}
	p.Threads = append(p.Threads, Thread{TID: 7, Name: "other", Frames: inTask},
		Thread{TID: 8, Frames: inRead, Blocks: Input, Ran: true}, Thread{TID: 10, Frames: inTask})
	p.Chains = []Chain{{Count: 5, Names: []string{"Task.Delay"}, Blocked: []uint32{7}},
		{Count: 2, Names: []string{"App.Mid"}, Blocked: []uint32{7, 10}}}
	for _, name := range []string{"App.X", "App.Y", "App.Z"} {
		p.Chains = append(p.Chains, Chain{Count: 1, Names: []string{name}, Blocked: []uint32{7}})
	}
	const task = "for a task (System.Threading.Tasks.Task.Wait()), in App.Get"
	want := []string{"thread 9 waits for input or output (read), in App.Load",
		`6 threads "pool" (1, 2, 3, 4, ...) wait ` + task,
		`thread 7 "other" waits ` + task + ": 5 times Task.Delay; App.Mid; App.X; and 2 more",
		"thread 8 runs, in App.Load", "thread 10 waits " + task + ": App.Mid"}
	got := Judge(p)[0].Evidence
	expect.True(t, len(got) >= len(want) && slices.Equal(got[:len(want)], want), "%q", got)
}

func TestFold(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{nil, nil},
		{[]string{"Task"}, []string{"Task"}},
		{[]string{"Task", "A", "B", "A"}, []string{"Task", "A", "B", "A"}},
		{[]string{"Task", "Task", "A", "B", "B", "B"}, []string{"Task (2 times)", "A", "B (3 times)"}},
	} {
		got := Fold(c.names)
		expect.True(t, slices.Equal(got, c.want), "%q: %q, want %q", c.names, got, c.want)
	}
	expect.Equal(t, (&Chain{Names: []string{"Task", "A", "A"}}).String(), "Task <- A (2 times)")
}

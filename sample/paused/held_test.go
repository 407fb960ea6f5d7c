package paused

import (
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The frames that run a task or resume an async method, by the names of the methods on a stack.
func TestHeld(t *testing.T) {
	const box = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1.AsyncStateMachineBox`1."
	const start = "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start"
	const task = "System.Threading.Tasks.Task.ExecuteWithThreadLocal"
	const run = "System.Threading.ExecutionContext.RunInternal"
	const wait = "System.Threading.ManualResetEventSlim.Wait"
	const wait2 = "System.Threading.Tasks.Task.InternalWait"
	for _, c := range []struct {
		name  string
		stack []string // leaf first
		runs  string   // methods, "task" for a task
		waits int      // frames whose words are kept
	}{
		{"a task", []string{wait, "App.Body", task, "System.Threading.ThreadPoolWorkQueue.Dispatch"},
			"[task]", 1},
		{"a task in a task", []string{wait, wait2, "App.Body", task, wait2, "App.Get", task},
			"[task task]", 2},
		{"a resumed method", []string{"App.Sum (async)", box + "ExecutionContextCallback", run,
			box + "MoveNext", "System.Threading.ThreadPoolWorkQueue.Dispatch"}, "[App.Sum]", 0},
		{"the last frame is of the box", []string{"App.Sum (async)", box + "MoveNext"}, "[App.Sum]", 0},
		{"a method that was called", []string{"App.Sum (async)", start, "App.Sum", "App.Main"}, "[]", 0},
		{"a called one in a resumed one", []string{"App.Inner (async)", start, "App.Inner", "App.Sum (async)",
			box + "MoveNext", "App.Main"}, "[App.Sum]", 0},
		{"it registers its continuation", []string{"App.Awaiter.OnCompleted",
			"System.Runtime.CompilerServices.AsyncTaskMethodBuilder.AwaitUnsafeOnCompleted", "App.Sum (async)",
			box + "MoveNext"}, "[]", 0},
		{"a called one that registers, in a resumed one", []string{"App.Awaiter.OnCompleted",
			"App.Inner (async)", start, "App.Inner", "App.Sum (async)", box + "MoveNext"}, "[App.Sum]", 0},
		{"no box", []string{"App.Sum (async)", "App.Main"}, "[]", 0},
	} {
		h := &held{}
		regs := context.FromAMD64(context.AMD64{})
		for i := range regs.AMD64.GPR {
			regs.AMD64.GPR[i] = 8
		}
		words := 0
		for _, name := range c.stack {
			f := &merge.Frame{Exact: true}
			h.visit(name, f, &regs, 0, nil)
			if words == 0 {
				words = len(h.waits)
			}
		}
		h.finish()
		got := []string{}
		for _, r := range h.runs {
			if r.Method == "" {
				r.Method = "task"
			}
			got = append(got, r.Method)
		}
		expect.Equal(t, fmt.Sprint(got), c.runs, "%s", c.name)
		expect.Equal(t, len(h.waits), c.waits*words, "%s", c.name)
	}
}

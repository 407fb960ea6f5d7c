package hang

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// stack makes frames: names with a dot are managed.
func stack(names ...string) (out []Frame) {
	for _, n := range names {
		out = append(out, Frame{n, strings.Contains(n, ".")})
	}
	return out
}

var (
	inMonitor = stack("__futex_abstimed_wait_common", "pthread_cond_wait", "",
		"System.Threading.Monitor.ReliableEnter", "App.Locked")
	inRead = stack("read", "SystemNative_Read", "Interop.Sys.Read", "App.Load")
	inTask = stack("pthread_cond_wait", "Monitor_Wait", "System.Threading.Monitor.Wait(object, int)",
		"System.Threading.ManualResetEventSlim.Wait", "System.Threading.Tasks.Task.InternalWaitCore",
		"System.Threading.Tasks.Task.Wait()", "App.Get")
	inJoin    = stack("__futex_abstimed_wait_common", "", "System.Threading.Thread.Join()", "App.Stop")
	inCollect = stack("clock_nanosleep", "__nanosleep", "", "GCInterface_Collect",
		"System.GC.Collect()", "App.Clean")
	workerLoop = stack("System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart")
	dispatch   = append(stack("System.Threading.ThreadPoolWorkQueue.Dispatch"), workerLoop...)
	idleWorker = append(stack("pthread_cond_wait", "System.Threading.LowLevelLifoSemaphore.Wait"),
		workerLoop...)
	taskWorker  = append(append([]Frame{}, inTask...), dispatch...)
	eventWorker = append(stack("pthread_cond_wait", "System.Threading.ManualResetEventSlim.Wait()",
		"App.Wait"), dispatch...)
	running = stack("App.Compute", "App.Main")
	// queue is a process of a first thread and of threads that wait for one lock. owners are the lock's
	// owners as each of them saw it.
	queue = func(first Thread, owners ...uint32) Process {
		p := Process{Threads: []Thread{first}}
		for i, owner := range owners {
			p.Threads = append(p.Threads,
				Thread{TID: uint32(i + 2), Frames: inMonitor,
					Lock: monitorHeld("0x1", owner), Ran: owner != owners[0]})
		}
		return p
	}
	// ownerOf is a thread that waits for tasks, and one that waits for its lock.
	ownerOf = func(chains ...Chain) Process {
		for i := range chains {
			chains[i].Blocked = []uint32{1}
		}
		p := queue(Thread{TID: 1, Frames: inTask, Blocks: Event}, 1)
		p.Chains = chains
		return p
	}
	// ownerOfAll is ownerOf with Task.WaitAll.
	ownerOfAll = func(chains ...Chain) Process {
		p := ownerOf(chains...)
		p.Threads[0].Frames = stack("__futex_abstimed_wait_common",
			"System.Threading.Tasks.Task.WaitAllBlockingCore", "App.Load")
		return p
	}
	monitorHeld = func(at string, owner uint32) Lock { return Lock{Kind: "monitor", At: at, Owner: owner} }
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		process Process
		kinds   string
		hang    bool
		says    string // in the first verdict and its evidence
	}{
		{"stopped", Process{Stopped: "a debugger (process 7)", Threads: []Thread{{TID: 1, Frames: running}}},
			"stopped", true, "process 7"},
		{"two threads", Process{Threads: []Thread{{TID: 1, Name: "a", Frames: inMonitor,
			Lock: monitorHeld("0x1", 2)}, {TID: 2, Frames: inMonitor, Lock: monitorHeld("0x2", 1)}}},
			"deadlock", true, `thread 2 waits for the monitor at 0x2, which thread 1 "a" holds, in App.Locked`},
		{"tasks in a circle", Process{Threads: []Thread{{TID: 1, Frames: inTask}, {TID: 2, Frames: inRead}},
			Chains: []Chain{{Count: 2, Names: []string{"App.A", "App.B", "App.A"}, Circle: true},
				{Count: 1, Names: []string{"App.A", "App.Main"}, Circle: true, Blocked: []uint32{1}}}},
			"deadlock", true, "thread 1 waits for a task (System.Threading.Tasks.Task.Wait()), in App.Get: " +
				"App.A <- App.Main (waits in a circle) " +
				"2 pending chains: App.A <- App.B <- App.A (waits in a circle)"},
		{"two threads that join each other", Process{Threads: []Thread{{TID: 1, Frames: inJoin, Joins: 2},
			{TID: 2, Name: "b", Frames: inJoin, Joins: 1}}},
			"deadlock", true, `thread 1 waits for the end of thread 2 "b", in App.Stop`},
		{"a join and a lock", Process{Threads: []Thread{{TID: 1, Frames: inJoin, Joins: 2},
			{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"deadlock", true, "thread 1 waits for the end of thread 2"},
		{"a lock over a task that needs it", Process{Threads: []Thread{
			{TID: 1, Frames: inTask, Awaits: []Await{{Task: "App.Load", At: "0x9", Runner: 2}}},
			{TID: 2, Name: "worker", Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"deadlock", true, `in App.Get; thread 2 "worker" runs App.Load at 0x9`},
		{"a lock over a task that needs it, until a timer ends it", Process{Threads: []Thread{
			{TID: 1, Frames: inTask, Awaits: []Await{{Task: "App.Load", Runner: 2, Limited: true}}},
			{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"deadlock", false, "until a wait with a time limit ends"},
		{"several tasks, and one needs the lock", Process{Threads: []Thread{{TID: 1, Frames: inTask,
			Awaits: []Await{{Runner: 3}, {Runner: 2, Limited: true}, {Runner: 2}}},
			{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}, {TID: 3, Frames: inRead}}},
			"deadlock", true, "2 threads wait for each other in a circle. They never continue."},
		{"a task that waits for itself", Process{Threads: []Thread{
			{TID: 1, Frames: inTask, Awaits: []Await{{Runner: 1}}}}},
			"deadlock", true, "a task that it runs itself"},
		{"a lock over a task that is run", Process{Threads: []Thread{
			{TID: 1, Frames: inTask, Awaits: []Await{{Runner: 2}}}, {TID: 2, Frames: running, Ran: true},
			{TID: 3, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"held-lock", false, "once thread 2 continues, which runs, in App.Compute."},
		{"a lock over a task that waits for another task that is run", Process{Threads: []Thread{
			{TID: 1, Frames: inTask, Awaits: []Await{{Runner: 2}}},
			{TID: 2, Frames: inTask, Awaits: []Await{{Runner: 4}}}, {TID: 4, Frames: running, Ran: true},
			{TID: 3, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"held-lock", false, "once thread 4 continues"},
		{"a lock over a task that reads", Process{Threads: []Thread{
			{TID: 1, Frames: inTask, Awaits: []Await{{Runner: 2}}}, {TID: 2, Frames: inRead, Blocks: Input},
			{TID: 3, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"held-lock", true, "for a task itself."},
		{"a static constructor", Process{Threads: []Thread{{TID: 1, Frames: inJoin, Joins: 2},
			{TID: 2, Lock: Lock{Kind: StaticConstructor, Name: "App.Cache", At: "0x5", Owner: 1}}}},
			"deadlock", true, "waits for the static constructor of App.Cache at 0x5, which thread 1 runs"},
		{"two mutexes", Process{Threads: []Thread{
			{TID: 1, Lock: Lock{Kind: "System.Threading.Mutex", Name: "one", At: "0x5", Owner: 2}},
			{TID: 2, Lock: Lock{Kind: "System.Threading.Mutex", At: "0x6", Owner: 1}}}},
			"deadlock", true, `the System.Threading.Mutex "one" at 0x5, which thread 2 holds`},
		{"a join of a thread that reads", Process{Threads: []Thread{{TID: 1, Frames: inJoin, Joins: 2},
			{TID: 2, Frames: inRead}}}, "waiting", false, "thread 1 waits for the end of thread 2, in App.Stop"},
		{"a join that has gone on", Process{Threads: []Thread{{TID: 1, Frames: inJoin, Joins: 2, Ran: true},
			{TID: 2, Frames: inJoin, Joins: 1}}}, "nothing", false, ""},
		{"a thread that waits for itself", Process{Threads: []Thread{{TID: 1, Frames: inMonitor,
			Lock: Lock{Kind: "pthread mutex", At: "0x1", Owner: 1}}}},
			"deadlock", true, "a lock that it holds itself"},
		{"a circle with a time limit",
			Process{Threads: []Thread{{TID: 1, Frames: inMonitor, Limited: true, Lock: monitorHeld("0x1", 2)},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x2", 1)}}}, "deadlock", false,
			"until a wait with a time limit ends"},
		{"a circle that moves", Process{Threads: []Thread{{TID: 1, Frames: inMonitor,
			Lock: monitorHeld("0x1", 2), Ran: true},
			{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x2", 1)}}},
			"nothing", false, "1 thread used CPU time"},
		{"behind a circle", Process{Threads: []Thread{{TID: 1, Frames: inMonitor,
			Lock: monitorHeld("0x1", 2)}, {TID: 2, Frames: inMonitor, Lock: monitorHeld("0x2", 1)},
			{TID: 3, Frames: inMonitor, Lock: monitorHeld("0x1", 2)}}}, "deadlock", true, "2 threads"},
		{"an owner that has ended", Process{Threads: []Thread{
			{TID: 2, Frames: inMonitor, Lock: Lock{Kind: "monitor", At: "0x1", Owner: 1, Ended: true}},
			{TID: 3, Frames: inMonitor, Limited: true,
				Lock: Lock{Kind: "monitor", At: "0x1", Owner: 1, Ended: true}}}},
			"abandoned", true, "2 threads (2, 3) wait for the monitor at 0x1, which thread 1 held when it ended"},
		{"an owner that has ended, and whose number is used again", Process{Threads: []Thread{
			{TID: 1, Frames: inRead, Blocks: Input},
			{TID: 2, Frames: inMonitor, Lock: Lock{Kind: "monitor", At: "0x1", Owner: 1, Ended: true}}}},
			"abandoned", true, "Threads that wait for it: 1."},
		{"an owner that has ended, of a lock that threads only try", Process{Threads: []Thread{
			{TID: 2, Frames: inMonitor, Limited: true, Lock: Lock{Kind: "monitor", At: "0x1", Ended: true}}}},
			"abandoned", false, "which a thread held when it ended"},
		{"an owner that has ended, in a snapshot that the next one refutes", Process{Threads: []Thread{
			{TID: 2, Frames: inMonitor, Ran: true, Lock: Lock{Kind: "monitor", At: "0x1", Ended: true}}}},
			"nothing", false, "1 thread used CPU time"},
		{"an owner that reads", Process{Threads: []Thread{{TID: 1, Frames: inRead, Blocks: Input},
			{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)},
			{TID: 3, Frames: inMonitor, Lock: monitorHeld("0x2", 2)}}},
			"held-lock", true, "2 threads wait behind a lock that thread 1 holds while it waits for input or output"},
		{"an owner that sleeps",
			Process{Threads: []Thread{{TID: 1,
				Frames: stack("pthread_cond_wait", "System.Threading.Thread.Sleep(int)", "App.Nap")},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"held-lock", false, "slow, not hung"},
		{"an owner that waits with a time limit",
			Process{Threads: []Thread{{TID: 1, Limited: true,
				Frames: stack("pthread_cond_wait", "System.Threading.Monitor.Wait(object, int)", "App.Nap")},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"held-lock", false, "That wait has a time limit"},
		{"an owner that waits for a delay",
			ownerOf(Chain{Names: []string{"Task.Delay", "App.Get"}, Limited: true}), "held-lock", false,
			"That wait has a time limit"},
		{"an owner that waits for one of two tasks",
			ownerOf(Chain{Names: []string{"App.Load", "Task.WhenAny"}},
				Chain{Names: []string{"Task.Delay", "Task.WhenAny"}, Limited: true}),
			"held-lock", false, "time limit"},
		{"an owner that waits for both of two tasks",
			ownerOf(Chain{Names: []string{"App.Load", "Task.WhenAll"}},
				Chain{Names: []string{"Task.Delay", "Task.WhenAll"}, Limited: true}),
			"held-lock", true, "for a task itself"},
		{"an owner that waits for both of two delays",
			ownerOf(Chain{Names: []string{"Task.Delay", "Task.WhenAll"}, Limited: true},
				Chain{Names: []string{"Task.Delay", "Task.WhenAll"}, Limited: true}),
			"held-lock", false, "time limit"},
		{"an owner that waits for all of two tasks",
			ownerOfAll(Chain{Names: []string{"App.Load"}},
				Chain{Names: []string{"Task.Delay"}, Limited: true}), "held-lock", true, "waits"},
		{"an owner that waits for all of two delays",
			ownerOfAll(Chain{Names: []string{"Task.Delay"}, Limited: true},
				Chain{Names: []string{"Task.Delay"}, Limited: true}), "held-lock", false, "time limit"},
		{"an owner that waits for a task while another waits for a delay",
			Process{Threads: ownerOf().Threads,
				Chains: []Chain{{Names: []string{"Task.Delay"}, Limited: true, Blocked: []uint32{3}}}},
			"held-lock", true, "for a task itself"},
		{"an owner that waits for a process",
			Process{Threads: []Thread{{TID: 1,
				Frames: stack("pthread_cond_wait", "System.Threading.WaitHandle.WaitOne(int)",
					"System.Diagnostics.ProcessWaitState.WaitForExit(int)",
					"System.Diagnostics.Process.WaitForExit()", "App.Spawn")},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}}, "held-lock", true,
			"while it waits for a child process"},
		{"an owner that computes",
			Process{Threads: []Thread{{TID: 1, Frames: running, Ran: true},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}}, "nothing", false,
			"thread 1 runs, in App.Compute"},
		{"an owner that reads and ran",
			Process{Threads: []Thread{{TID: 1, Frames: inRead, Blocks: Input, Ran: true},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}},
			"nothing", false, "thread 1 runs"},
		{"a queue", Process{Threads: []Thread{{TID: 1, Frames: running, Ran: true},
			{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)},
			{TID: 3, Frames: inMonitor, Lock: monitorHeld("0x1", 1)},
			{TID: 4, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}}, "convoy", false,
			"3 threads queue for the monitor at 0x1. Its owner runs"},
		{"a queue whose owner does not run", queue(Thread{TID: 1, Frames: running}, 1, 1, 1), "convoy", false,
			"Thread 1 holds it and did not run"},
		{"a queue with an owner that changes", queue(Thread{TID: 1, Frames: running}, 1, 2, 1),
			"convoy", false, "Its owner changes"},
		{"a queue without an owner", queue(Thread{TID: 1, Frames: running}, 9, 9, 9), "convoy",
			false, "Its owner is not known"},
		{"a queue in a core", Process{Once: true,
			Threads: queue(Thread{TID: 1, Frames: running}, 1, 1, 1).Threads}, "convoy",
			false, "A core does not show"},
		{"a collection", Process{Threads: []Thread{{TID: 1, Frames: inCollect, Ran: true},
			{TID: 2, Frames: inRead, Blocks: Input, Cooperative: true}}},
			"collection", true, "waits for thread 2"},
		{"a collection that runs",
			Process{Threads: []Thread{{TID: 1, Frames: inCollect, Ran: true, Moved: true},
				{TID: 2, Frames: inRead, Blocks: Input, Cooperative: true}}}, "nothing", false, ""},
		{"a collection that an allocation started",
			Process{Threads: []Thread{{TID: 1, Frames: running, Suspends: true, Ran: true},
				{TID: 2, Frames: inRead, Blocks: Input, Cooperative: true, Ran: true}}},
			"collection", true, "thread 1 waits for a garbage collection"},
		{"a collection by a thread that moves",
			Process{Threads: []Thread{{TID: 1, Frames: running, Suspends: true, Ran: true, Moved: true},
				{TID: 2, Frames: inRead, Blocks: Input, Cooperative: true, Ran: true}}},
			"collection", true, "waits for thread 2"},
		{"collections beside a thread in a loop",
			Process{Threads: []Thread{{TID: 1, Frames: running, Suspends: true, Ran: true, Moved: true},
				{TID: 2, Frames: running, Cooperative: true, Ran: true}}}, "nothing", false, ""},
		{"a collection of stopped threads",
			Process{Threads: []Thread{{TID: 1, Frames: inCollect}, {TID: 2, Frames: inRead, Blocks: Input}}},
			"waiting", false, "1 for input or output, 1 for a garbage collection"},
		{"a wait for finalizers",
			Process{Threads: []Thread{{TID: 1, Blocks: Event,
				Frames: stack("pthread_cond_wait", "GCInterface_WaitForPendingFinalizers",
					"System.GC.WaitForPendingFinalizers()", "App.Main")},
				{TID: 2, Frames: running, Cooperative: true, Ran: true, Moved: true}}}, "nothing", false,
			"thread 1 waits for the finalizers (System.GC.WaitForPendingFinalizers()), in App.Main"},
		{"a collection beside a thread that computes",
			Process{Threads: []Thread{{TID: 1, Frames: inCollect},
				{TID: 2, Frames: running, Cooperative: true, Ran: true, Moved: true}}}, "nothing", false, ""},
		{"a core with a lock whose owner has ended", Process{Once: true, Threads: []Thread{
			{TID: 2, Frames: inMonitor, Lock: Lock{Kind: "monitor", At: "0x1", Ended: true}}}},
			"abandoned", true, "They never continue."},
		{"a core without the owners of locks", Process{Once: true, Threads: []Thread{
			{TID: 2, Frames: inMonitor, Blocks: Event}, {TID: 3, Frames: inMonitor, Blocks: Event}}},
			"nothing", false, "The owners of the locks of 2 threads are not known"},
		{"a native thread in a wait with a time limit", Process{Threads: []Thread{{TID: 2, Blocks: Input,
			Frames: stack("__futex_abstimed_wait_common", "pthread_cond_timedwait")}}},
			"waiting", false, "thread 2 waits for an event or a mutex"},
		{"a core in a collection",
			Process{Once: true, Threads: []Thread{{TID: 1, Frames: inCollect},
				{TID: 2, Frames: running, Cooperative: true}}}, "collection", false, ""},
		{"a core with an owner that reads",
			Process{Once: true, Threads: []Thread{{TID: 1, Frames: inRead, Blocks: Input},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 1)}}}, "held-lock", false, ""},
		{"a core with a circle",
			Process{Once: true, Threads: []Thread{{TID: 1, Frames: inMonitor, Lock: monitorHeld("0x1", 2)},
				{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x2", 1)}}}, "deadlock", true, ""},
		{"a pool that grows", Process{Processors: 2,
			Threads: []Thread{{TID: 1, Frames: taskWorker}, {TID: 2, Frames: taskWorker},
				{TID: 3, Frames: taskWorker, Ran: true, Moved: true}}}, "starvation", true, "All 3 workers"},
		{"two workers that may wait for a timer",
			Process{Processors: 2, Threads: []Thread{{TID: 1, Frames: taskWorker},
				{TID: 2, Frames: taskWorker}}}, "starvation", false, ""},
		{"workers behind whom their work is queued",
			Process{Processors: 8, Threads: []Thread{{TID: 1, Frames: taskWorker}},
				Chains: []Chain{{Count: 1, Names: []string{"App.Later"},
					Queued: true, Blocked: []uint32{1}}}},
			"starvation", true, "queued behind them"},
		{"a worker whose work has begun",
			Process{Processors: 8, Threads: []Thread{{TID: 1, Frames: taskWorker}},
				Chains: []Chain{{Count: 1, Names: []string{"App.Later"}, Blocked: []uint32{1}}}},
			"waiting", false, ""},
		{"workers that have just begun to wait",
			Process{Processors: 8, Threads: []Thread{{TID: 1, Frames: taskWorker, Ran: true}},
				Chains: []Chain{{Count: 1, Names: []string{"App.Later"},
					Queued: true, Blocked: []uint32{1}}}},
			"nothing", false, ""},
		{"workers", Process{Processors: 1,
			Threads: []Thread{{TID: 1, Frames: taskWorker}, {TID: 2, Frames: taskWorker}}},
			"starvation", true, "All 2 workers"},
		{"workers with nothing queued behind them",
			Process{Processors: 1, NoneQueued: true,
				Threads: []Thread{{TID: 1, Frames: taskWorker}, {TID: 2, Frames: taskWorker}}},
			"waiting", false, ""},
		{"workers of a larger machine",
			Process{Processors: 3, Threads: []Thread{{TID: 1, Frames: taskWorker},
				{TID: 2, Frames: taskWorker}}}, "waiting", false, ""},
		{"workers that wait for events, with work behind them",
			Process{Processors: 2, Queued: 5, Threads: []Thread{{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: eventWorker, Blocks: Event},
				{TID: 3, Frames: eventWorker, Blocks: Event, New: true, Moved: true, Ran: true}}},
			"starvation", false, "5 work items are in its queue"},
		{"a new worker that waits for a task, with work behind all",
			Process{Processors: 2, Queued: 5, Threads: []Thread{
				{TID: 1, Frames: eventWorker, Blocks: Event}, {TID: 2, Frames: eventWorker, Blocks: Event},
				{TID: 3, Frames: taskWorker, New: true, Moved: true, Ran: true}}},
			"starvation", false, "5 work items are in its queue"},
		{"workers that wait for queued work, with a time limit",
			Process{Processors: 8, Threads: []Thread{{TID: 1, Frames: taskWorker, Limited: true}},
				Chains: []Chain{{Count: 1, Names: []string{"App.Later"}, Queued: true,
					Blocked: []uint32{1}}}},
			"starvation", false, "All waits have a time limit."},
		{"workers that wait for an event and a task, with work behind them",
			Process{Processors: 2, Queued: 1, Threads: []Thread{{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: taskWorker}}}, "starvation", false, "1 work item is in its queue"},
		{"workers that wait for events, with nothing queued",
			Process{Processors: 2, Threads: []Thread{{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: eventWorker, Blocks: Event}}}, "waiting", false, ""},
		{"fewer workers than processors, with work behind them",
			Process{Processors: 3, Queued: 5, Threads: []Thread{
				{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: eventWorker, Blocks: Event}}}, "waiting", false, ""},
		{"an older worker that ran, with work behind it",
			Process{Processors: 2, Queued: 5, Threads: []Thread{
				{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: eventWorker, Blocks: Event, Moved: true, Ran: true}}}, "nothing", false, ""},
		{"a worker whose task may be new, with work behind it",
			Process{Processors: 2, Queued: 5, Threads: []Thread{
				{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: taskWorker, Moved: true, Ran: true}}}, "nothing", false, ""},
		{"an idle worker, with work behind the others",
			Process{Processors: 2, Queued: 5, Threads: []Thread{
				{TID: 1, Frames: eventWorker, Blocks: Event},
				{TID: 2, Frames: eventWorker, Blocks: Event}, {TID: 3, Frames: idleWorker}}},
			"waiting", false, ""},
		{"workers in a queue for a lock, with work behind them",
			Process{Processors: 2, Queued: 5, Threads: func() (all []Thread) {
				all = []Thread{{TID: 1, Frames: running, Ran: true}}
				for tid := range uint32(3) {
					all = append(all, Thread{TID: tid + 2, Lock: monitorHeld("0x1", 1),
						Frames: append(append([]Frame{}, inMonitor...), dispatch...)})
				}
				return all
			}()}, "convoy", false, "Its owner runs"},
		{"a worker, one of whose two tasks is queued",
			Process{Processors: 8, Threads: []Thread{{TID: 1, Frames: taskWorker}},
				Chains: []Chain{{Count: 1, Names: []string{"App.First"}, Blocked: []uint32{1}},
					{Count: 1, Names: []string{"App.Later"}, Queued: true, Blocked: []uint32{1}}}},
			"starvation", true, "queued behind them"},
		{"a worker that waits for queued work or a delay",
			Process{Processors: 8, Threads: []Thread{{TID: 1, Frames: taskWorker}},
				Chains: []Chain{{Count: 1, Names: []string{"App.Later", "Task.WhenAny"}, Queued: true,
					Blocked: []uint32{1}}, {Count: 1, Names: []string{"Task.Delay", "Task.WhenAny"},
					Blocked: []uint32{1}}}}, "waiting", false, ""},
		{"a free worker", Process{Processors: 2,
			Threads: []Thread{{TID: 1, Frames: taskWorker}, {TID: 2, Frames: taskWorker},
				{TID: 3, Frames: idleWorker}}}, "waiting", false, ""},
		{"a worker that runs", Process{Processors: 2,
			Threads: []Thread{{TID: 1, Frames: taskWorker}, {TID: 2, Frames: taskWorker},
				{TID: 3, Frames: append(append([]Frame{}, inRead...), dispatch...), Blocks: Input,
					Ran: true}}}, "nothing", false, ""},
		{"main waits for a task",
			Process{Threads: []Thread{{TID: 1, Frames: inTask},
				{TID: 2, Name: ".NET Finalizer", Frames: stack("pthread_cond_wait")}}}, "waiting", false,
			"thread 1 waits for a task (System.Threading.Tasks.Task.Wait()), in App.Get"},
		{"a worker that ran and is free now",
			Process{Threads: []Thread{{TID: 1, Frames: inRead, Blocks: Input},
				{TID: 2, Frames: idleWorker, Ran: true}}}, "nothing", false, "1 thread used CPU time"},
		{"a core", Process{Once: true, Threads: []Thread{{TID: 1, Frames: inRead, Blocks: Input}}},
			"nothing", false, "one snapshot"},
		{"a core without the memory of stacks",
			Process{Once: true, Threads: []Thread{{TID: 1, Frames: inRead, Blocks: Input, Incomplete: true}}},
			"nothing", false, "1 stack is incomplete"},
		{"no thread", Process{}, "nothing", false, ""},
		{"an owner that is gone",
			Process{Threads: []Thread{{TID: 2, Frames: inMonitor, Lock: monitorHeld("0x1", 9)}}}, "waiting",
			false, "which thread 9 holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Judge(&c.process)
			var kinds []string
			for _, v := range got {
				kinds = append(kinds, string(v.Kind))
			}
			k := strings.Join(kinds, " ")
			expect.True(t, k == c.kinds && got[0].Hang == c.hang, "%s, %v", k, got[0].Hang)
			text := fmt.Sprint(got[0])
			expect.True(t, strings.Contains(text, c.says), "%s\ndoes not say %q", text, c.says)
		})
	}
}

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		frames []Frame
		blocks Wait
		want   Wait
		place  string
		by     string
	}{
		{inRead, Input, Input, "App.Load", "read"},
		{inTask, Event, Task, "App.Get", "System.Threading.Tasks.Task.Wait()"},
		{inMonitor, Event, Enter, "App.Locked", "System.Threading.Monitor.ReliableEnter"},
		{inCollect, Sleep, Collection, "App.Clean", "System.GC.Collect()"},
		{running, NoWait, NoWait, "App.Compute", ""},
		{stack("recvmsg", "SystemNative_Receive", "System.Net.Sockets.Socket.Receive", "App.Load"), Input,
			Input, "App.Load", "recvmsg"},
		{stack("__futex_abstimed_wait_common64", "sem_wait", "App.Wait"), Event, Event, "App.Wait",
			"__futex_abstimed_wait_common64"},
		{stack("clock_nanosleep", "usleep", "App.Nap"), Input, Sleep, "App.Nap", "usleep"}, // restart_syscall
		{stack("wait4", "SystemNative_WaitPid", "System.Diagnostics.Process.WaitForExit", "App.Run"), Child,
			Child, "App.Run", "System.Diagnostics.Process.WaitForExit"},
		{stack("pthread_cond_wait", "System.Threading.WaitHandle.WaitOne",
			"System.Threading.ReaderWriterLockSlim.EnterWriteLock", "App.Write"), Event, ReaderWriter,
			"App.Write", "System.Threading.ReaderWriterLockSlim.EnterWriteLock"},
		{stack("pthread_cond_wait", "System.Threading.Monitor.Wait", "System.Threading.SemaphoreSlim.Wait()",
			"App.Take"), Event, Semaphore, "App.Take", "System.Threading.SemaphoreSlim.Wait()"},
		{stack("pthread_cond_wait", "System.Threading.Thread.Sleep(int)", "App.Nap"), Event, Sleep, "App.Nap",
			"System.Threading.Thread.Sleep(int)"},
		{stack("pthread_cond_wait", "System.Threading.Monitor.Wait(object)", "App.Take"), Event, Pulse,
			"App.Take", "System.Threading.Monitor.Wait(object)"},
		{stack("pthread_cond_wait", "System.Threading.Monitor.Wait",
			"System.Threading.ManualResetEventSlim.Wait()", "App.Take"), Event, Event, "App.Take",
			"System.Threading.ManualResetEventSlim.Wait()"},
		{stack("pthread_cond_wait", "System.Threading.WaitHandle.WaitOneNoCheck(int)",
			"System.Threading.TimerQueue.TimerThread()"), Event, Idle,
			"System.Threading.WaitHandle.WaitOneNoCheck(int)",
			"System.Threading.WaitHandle.WaitOneNoCheck(int)"},
		{idleWorker, Event, Idle, "System.Threading.LowLevelLifoSemaphore.Wait", "pthread_cond_wait"},
		{nil, NoWait, NoWait, "", ""}, {nil, Input, Input, "", ""},
	} {
		th := Thread{Frames: c.frames, Blocks: c.blocks}
		if w, by := th.Wait(); w != c.want || th.Place() != c.place || by != c.by {
			t.Errorf("%v: %v by %q in %q", c.frames, w, by, th.Place())
		}
	}
}

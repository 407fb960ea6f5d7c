package waits

import "strings"

// pool lists parts of the names of methods in which idle threads of the thread pool, timers, and
// sockets wait.
var pool = []string{"GateThread.GateThreadStart", "TimerQueue.TimerThread",
	"WorkerThread.WorkerThreadStart", "WaitThread.WaitThreadStart",
	"IOCompletionPoller.Poll", "PortableThreadPool+GateThread", "SocketAsyncEngine.EventLoop"}

// Idle reports whether a stack belongs to an idle thread of the pool, a timer thread, or a
// starting thread. A work item on a thread of the pool is not idle.
func Idle(frames []Frame) bool {
	ours, managed := false, false
	for i := range frames {
		f := &frames[i]
		if !f.Managed {
			continue
		}
		managed = true
		if !strings.HasPrefix(f.Name, "System.Threading.") &&
			!strings.HasPrefix(f.Name, "System.Net.Sockets.SocketAsyncEngine") ||
			strings.Contains(f.Name, "ThreadPoolWorkQueue.Dispatch") {
			return false
		}
		for _, p := range pool {
			ours = ours || strings.Contains(f.Name, p)
		}
	}
	return ours || !managed && len(frames) == 1 && frames[0].Addr == 0
}

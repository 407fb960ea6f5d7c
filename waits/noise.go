package waits

import "strings"

// pool are the thread pool's own threads: what they wait for is work.
var pool = []string{"GateThread.GateThreadStart", "TimerQueue.TimerThread", "WorkerThread.WorkerThreadStart", "WaitThread.WaitThreadStart",
	"IOCompletionPoller.Poll", "PortableThreadPool+GateThread", "SocketAsyncEngine.EventLoop"}

// Idle is whether a stack is a thread of the pool that waits for work, a timer's
// thread, or a thread that is just being started: nothing a program does.
// A work item is none, though it runs on a thread of the pool.
func Idle(frames []Frame) bool {
	ours, managed := false, false
	for i := range frames {
		f := &frames[i]
		if !f.Managed {
			continue
		}
		managed = true
		if !strings.HasPrefix(f.Name, "System.Threading.") && !strings.HasPrefix(f.Name, "System.Net.Sockets.SocketAsyncEngine") || strings.Contains(f.Name, "ThreadPoolWorkQueue.Dispatch") {
			return false
		}
		for _, p := range pool {
			ours = ours || strings.Contains(f.Name, p)
		}
	}
	return ours || !managed && len(frames) == 1 && frames[0].Addr == 0
}

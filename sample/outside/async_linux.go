package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// heapEvery is how often the bounds of the managed heap are read.
const heapEvery = time.Second

// followObjects gives the probe the bounds of the managed heap, which it needs for async callers. It
// does nothing if async callers are not wanted or the runtime's structures are not proven.
func (e *Engine) followObjects(now time.Time) {
	t := e.Target.Tables
	if !e.Config.Async || t == nil || !t.Proven() || now.Sub(e.objectsAt) < heapEvery {
		return
	}
	e.objectsAt = now
	if e.Async == nil {
		if err := e.FollowAsync(e.file.SetRule); err != nil {
			e.Stream.Out.Note("no async callers: " + err.Error())
			e.Config.Async = false
			return
		}
	}
	if heap, changes, ok := e.Async.ReadHeap(); ok {
		handle, _ := t.Descriptor().Offset("Thread", "GCHandle")
		e.file.FollowObjects(heap.Start, heap.End-heap.Start, changes, handle)
	}
}

// lateActivity reads the current Activity of a thread whose stack the kernel has copied.
func (e *Engine) lateActivity(t *threads.Task, c *walk.Capture) {
	if e.Async == nil || t.Thread == 0 {
		return
	}
	if handle, ok := e.Target.Tables.Descriptor().Offset("Thread", "GCHandle"); ok {
		e.LateActivity(c, t.Thread+uint64(handle))
	}
}

// readActivity reads the current Activity of a blocked thread, for its next sample. The sample gets
// none if the thread has run since its counters were before.
func (e *Engine) readActivity(t *threads.Task, sp, ip uint64, before threads.Counters) {
	if e.Async == nil || t.Thread == 0 {
		return
	}
	if handle, ok := e.Target.Tables.Descriptor().Offset("Thread", "GCHandle"); ok {
		e.Stream.Activity = e.Async.ActivityOf(e.Target.Mem, t.Thread+uint64(handle),
			func() bool { return e.stayed(t, sp, ip, before) })
	}
}

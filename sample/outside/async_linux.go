package outside

import "time"

// heapEvery is how often the bounds of the managed heap are read.
const heapEvery = time.Second

// followObjects has samples get async callers, if they are wanted and the runtime's structures
// are proven.
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

// Package quiet keeps the Go runtime of our libraries from calling the system while a
// thread of the host process is suspended. The Windows profiler and the C library call Begin
// before they sample.
//
// Strategy. A new Go thread may wait for the lock of the loader or of the heap, and the
// suspended thread may own that lock. So Begin creates enough threads in advance. A
// garbage collection stops the sampler until every Go thread has answered, and a thread
// that is being created cannot answer. So Begin turns Go's own collections off, and
// Garbage.Collect runs them while nothing is suspended.
//
// It would not help to run Go on only one thread in the window. After 10 ms, the Go
// runtime takes that thread's processor away, and another thread returns it.
//
// Source: the Go runtime's proc.go (sysmon, startm, newm) and mgc.go.
//
// Glossary. The *window* is the time in which a thread of the process is suspended.
//
// Known gaps: Go does not guarantee the behavior that this package relies on. If a release
// of Go changes it, the tests of profiler/e2e hang.
package quiet

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// spare is the number of threads that Begin creates. Go never ends them. Go needs one thread
// for each processor that it uses (GOMAXPROCS, at most 4 in our libraries). It needs one more
// for each call that waits in the system.
const spare = 16

var once sync.Once

// Begin prepares the Go runtime for the life of the process. Later calls do nothing. No
// thread may be suspended during the first call.
func Begin() { once.Do(func() { off(); Threads(spare) }) }

func off() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(math.MaxInt64)
}

// Threads makes Go create n threads in addition to the busy ones. It starts n goroutines,
// each bound to a thread, and returns when all have run at the same time.
func Threads(n int) {
	var here, all sync.WaitGroup
	here.Add(n)
	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			here.Done()
			here.Wait()
		})
	}
	all.Wait()
}

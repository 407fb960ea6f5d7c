// Package quiet makes the Go runtime need nothing of the system while a thread of
// the process is suspended, for libraries of ours in processes that are not.
//
// Strategy. A new thread of Go's waits for locks of the system, the loader's or
// the heap's, which the suspended thread may own: so enough threads are made
// before. A collection stops the sampler at two points until each thread of Go's
// has answered; one that is just being made cannot: so Go's own collections are
// off, and Garbage makes them where nothing is suspended.
//
// That only one thread runs Go in the window does not help: after 10 ms the Go
// runtime takes its processor away and gives it back by another thread.
//
// Source: the Go runtime's proc.go (sysmon, startm, newm) and mgc.go.
//
// Glossary. The *window* is the time in which a thread of the process is suspended.
//
// Known gaps: what it relies on is no promise of Go's; the tests of profiler/e2e hang
// if a release does otherwise.
package quiet

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// spare is how many threads of Go's are made; Go keeps them. It needs one a
// processor it uses (GOMAXPROCS, at most 4 in our libraries' work) and one for
// each that waits for the system.
const spare = 16

var once sync.Once

// Begin makes the runtime quiet, for the life of the process. Nothing may be
// suspended yet.
func Begin() { once.Do(func() { off(); Threads(spare) }) }

func off() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(math.MaxInt64)
}

// Threads makes sure that Go has n threads more than those that are busy: n
// goroutines, each bound to a thread, wait for one another.
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

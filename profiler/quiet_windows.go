package main

/*
#include "shim.h"
*/
import "C"

import (
	"math"
	"runtime/debug"
	"sync"
)

// spareThreads is how many threads of Go's are made before any thread is
// suspended; Go keeps them. It needs one per processor it uses (GOMAXPROCS, see
// swgoSampler) and one for each that waits for the system.
const spareThreads = 16

// quiet makes the Go runtime need nothing of the system while a thread is
// suspended. A new thread waits for the loader's lock, which the suspended one may
// own: so there must be enough. And a collection waits for every thread, new ones
// too: core's garbage collects between suspensions instead.
//
// Nor does it help that only the sampler runs Go in the window: after 10 ms the Go
// runtime takes the processor from it, and gives it back by another thread.
func quiet() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(math.MaxInt64)
	gather(spareThreads)
}

// gather keeps n goroutines in C at the same time, each on a thread of its own.
func gather(n int) {
	C.sw_gather_begin(C.int(n))
	var all sync.WaitGroup
	for range n {
		all.Go(func() { C.sw_gather() })
	}
	all.Wait()
}

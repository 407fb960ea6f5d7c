// Command othergo is a Go library that has nothing to do with ours: it lives in the
// same process, in the guard's tests.
package main

import "C"

import (
	"runtime"
	"sync"
)

func main() {}

// othergo_works uses what another Go runtime's signal handlers are for: a fault that
// becomes a panic, and goroutines that are preempted by a collection.
//
//export othergo_works
func othergo_works() (ok C.int) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var kept [][]byte
			for i := range 200 {
				kept = append(kept, make([]byte, 1<<12))
				if i%50 == 0 {
					runtime.GC()
				}
			}
			runtime.KeepAlive(kept)
		})
	}
	wg.Wait()
	defer func() {
		if recover() != nil {
			ok = 1
		}
	}()
	var p *int
	return C.int(*p)
}

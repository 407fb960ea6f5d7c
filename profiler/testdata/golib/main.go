// Command golib is a Go library whose goroutines keep its scheduler busy, for a test program that loads it.
// Go's runtime moves all signal handlers to alternate stacks and takes SIGURG.
package main

import "C"

import (
	"sync/atomic"
	"time"
)

var turns atomic.Int64

func init() {
	for range 4 {
		go func() {
			for {
				turns.Add(int64(len(make([]byte, 1000))))
				time.Sleep(time.Millisecond)
			}
		}()
	}
}

//export golib_spin
func golib_spin(rounds int) (x int) {
	for i := range rounds {
		x = x*1664525 + 1013904223 + i
	}
	return x
}

func main() {}

// Command busygo is a library with a loop that Go's collector must interrupt.
package main

import "C"

import (
	"runtime"
	"sync/atomic"
)

var sink atomic.Uint64

// spin runs for a while without a call: only a signal can stop it there.
func spin(n uint64) (x uint64) {
	for i := range n {
		x = x*31 + i
	}
	return x
}

//export warm
func warm() {}

//export busy
func busy() {
	var stop atomic.Bool
	began, done := make(chan struct{}), make(chan struct{})
	go func() {
		close(began)
		for !stop.Load() {
			sink.Store(spin(20_000_000))
			runtime.Gosched() // the collection's turn, if no signal gave it
		}
		close(done)
	}()
	<-began
	for range 5 {
		runtime.GC()
	}
	stop.Store(true)
	<-done
}

func main() {}

package main

// #include "guard_linux.h"
import "C"

import (
	"runtime"
	"sync"
)

// restore puts back, once, the signal actions that Go's start has changed: those
// whose handler is now a function of this Go runtime, and those that have become
// SA_ONSTACK. Another Go runtime of the process has functions of its own.
var restore = sync.OnceFunc(func() {
	for s := range C.sw_guard_signals() {
		if h := C.sw_guard_handler(s); h != 0 && runtime.FuncForPC(uintptr(h)) != nil {
			C.sw_guard_restore(s)
		} else if h != 0 {
			C.sw_guard_flags(s)
		}
	}
})

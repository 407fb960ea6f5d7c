package main

// #include "guard_linux.h"
import "C"

import (
	"runtime"
	"sync"
)

// restore undoes, once, the changes of Go's start to signal actions: those whose handler is now a function of
// this Go runtime, and those that got SA_ONSTACK. Another Go runtime in the process has functions of its own.
var restore = sync.OnceFunc(func() {
	for s := range C.sw_guard_signals() {
		if h := C.sw_guard_handler(s); h != 0 && runtime.FuncForPC(uintptr(h)) != nil {
			C.sw_guard_restore(s)
		} else if h != 0 {
			C.sw_guard_flags(s)
		}
	}
})

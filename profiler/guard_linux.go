package main

// #include "callback.h"
import "C"

// Go has taken over the signals by the time that this runs. They are restored here, so that the process has
// its own handlers even if the runtime then rejects the profiler, or the profiler the runtime.
func init() { C.sw_go_started() }

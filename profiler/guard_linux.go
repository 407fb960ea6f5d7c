package main

// #include "callback.h"
import "C"

// Go has taken the signals by the time that it runs this: whatever becomes of the
// profiler from here on, a runtime that does not want it or that it does not want,
// the process has its own again.
func init() { C.sw_go_started() }

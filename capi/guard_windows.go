package main

// void sw_guard_restore(void);
import "C"

import "sync"

// restore undoes, once, the changes of Go's start in the process.
var restore = sync.OnceFunc(func() { C.sw_guard_restore() })

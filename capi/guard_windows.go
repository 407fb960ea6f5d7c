package main

// void sw_guard_restore(void);
import "C"

import "sync"

// restore puts back, once, what Go's start has changed in the process.
var restore = sync.OnceFunc(func() { C.sw_guard_restore() })

// Command profiler is the CLR profiler: a shared library that the runtime loads (CORECLR_PROFILER_PATH),
// built with -buildmode=c-shared by scripts/library.sh.
//
// The C half (callback.c, and host/shim.h below it) answers the CLR on application threads. This half runs on
// one thread, the sampler, which the C half starts. Package host presents the process from inside; package
// agent is the loop, without cgo.
//
// Environment, set by `seedwalk record`:
//
//   - SEEDWALK_SOCKET: unix socket of the tool; on Windows tcp:ADDRESS:PORT:SECRET
//   - SEEDWALK_RATE: rounds per second
//   - SEEDWALK_RAW: file for raw samples
//   - SEEDWALK_STACK_BYTES: room for one copied stack
//   - SEEDWALK_BESIDE: this library is loaded beside another profiler
//
// Sources: dotnet/runtime docs/design/coreclr/profiling and src/coreclr/inc/ clrconfignames.h (the
// environment), releases 2.0 to 10.0; the headings of package host's C files list what the runtime calls.
//
// Glossary. The *tool* is the process that runs `seedwalk record`; the *target* is the process that loads
// this library.
//
// Strategy: this package only reads the environment and connects. If the tool cannot be reached, the program
// runs without being sampled.
//
// Known gaps: x86-64 only; the library stays loaded until the process ends.
package main

/*
// cgo's own code has unused parameters; `make lint` compiles ours without the exception.
#cgo CFLAGS: -O2 -Wall -Wextra -Werror -Wno-unused-parameter -fvisibility=hidden
#include "callback.h"
*/
import "C"

import (
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/seedwalk/seedwalk/profiler/host"
	"github.com/seedwalk/seedwalk/sample/agent"
)

func main() {} // required by c-shared, never called

// swgoSampler is the sampler thread's life: the one entry into Go.
//
//export swgoSampler
func swgoSampler() {
	runtime.LockOSThread()
	if runtime.GOMAXPROCS(0) < 4 {
		// The sampler must keep running even if another thread of Go's waits for a lock that a stopped target
		// holds.
		runtime.GOMAXPROCS(4)
	}
	C.sw_sampler_ready()
	for C.sw_armed() == 0 {
		time.Sleep(time.Millisecond)
	}
	if C.sw_armed() < 0 {
		return
	}
	conn, err := dial(os.Getenv("SEEDWALK_SOCKET"))
	if err != nil {
		os.Stderr.WriteString("seedwalk: cannot reach the tool: " + err.Error() +
			"; the program runs on without being sampled\n")
		return
	}
	cfg := config()
	cfg.Ended = conn.ended
	host.NewAgent(cfg, conn.send).Run()
	conn.close()
}

func config() agent.Config {
	rate, err := strconv.ParseFloat(os.Getenv("SEEDWALK_RATE"), 64)
	if err != nil || rate <= 0 {
		rate = 100
	}
	return agent.Config{RateHz: rate, Slots: host.Slots, Raw: os.Getenv("SEEDWALK_RAW")}
}

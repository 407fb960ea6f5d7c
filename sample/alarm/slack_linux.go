package alarm

import (
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// toolSlack is the timer slack of the tool's threads, nanoseconds. Threads that need more exact timers set
// their own.
const toolSlack = 1000000

// slackBefore holds, in the environment of the program that was executed again, the slack before that.
const slackBefore = "SEEDWALK_TIMER_SLACK"

// usualSlack is the timer slack with which the tool was started, nanoseconds; 0 if it still has that.
var usualSlack uint64

// EnlargeSlack permits the kernel to expire the timers of all threads of this process up to 1 ms late,
// together with others. While any goroutine runs, Go's monitor thread sleeps for 20 µs again and again, and
// each expiry interrupts a thread of the recorded program. A thread inherits its slack, and the monitor
// exists before main. So EnlargeSlack executes the program again, unless this is the second time. If that is
// impossible, nothing changes. Only main may call it.
func EnlargeSlack() {
	if before, again := os.LookupEnv(slackBefore); again {
		os.Unsetenv(slackBefore)
		usualSlack, _ = strconv.ParseUint(before, 10, 64)
		return
	}
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	path, err2 := os.Executable()
	if err != nil || err2 != nil || before >= toolSlack {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setSlack(toolSlack)
	_ = syscall.Exec(path, os.Args, append(os.Environ(), slackBefore+"="+strconv.Itoa(before)))
	setSlack(uint64(before))
}

// WithUsualSlack calls start, which starts a process. The process inherits the slack with which the tool was
// started.
func WithUsualSlack(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && usualSlack != 0 {
		setSlack(usualSlack)
		defer setSlack(uint64(slack))
	}
	return start()
}

func setSlack(ns uint64) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0) }

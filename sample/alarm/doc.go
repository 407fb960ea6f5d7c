// Package alarm wakes a goroutine at a time that others may change, with few system calls. On Linux it also
// has a short sleep that Go's scheduler does not see.
//
// Sources: timerfd_create(2); PR_SET_TIMERSLACK in prctl(2); Go's runtime/netpoll and proc.go (sysmon).
//
// Glossary. An alarm *goes off* once, at the time that was set last. A thread's *timer slack* is how late the
// kernel may expire its timers, to save interrupts.
//
// Strategy. Go's poller waits for a kernel timer, which does not wake Go's monitor thread. Where the monitor
// runs nevertheless, a large slack makes it rare.
//
// Known gaps: systems other than Linux use Go's timers.
package alarm

// Package alarm wakes a goroutine at a time that others may change, with few system calls. On Linux it also
// has a short sleep that Go's scheduler does not see.
//
// Sources: timerfd_create(2); Go's runtime/netpoll.
//
// Glossary. An alarm *goes off* once, at the time that was set last.
//
// Strategy. Go's poller waits for a kernel timer, which does not wake Go's monitor thread.
//
// Known gaps: systems other than Linux use Go's timers.
package alarm

// Package alarm wakes a goroutine at a time that others may change, for few calls of the kernel.
//
// Sources: timerfd_create(2); Go's runtime/netpoll.
//
// Glossary. An alarm *goes off* once for each time that it is set.
//
// Strategy. Go's poller waits for a timer of the kernel's, which wakes no monitor thread.
//
// Known gaps: other systems than Linux use Go's own timers.
package alarm

// Package perfevent opens the kernel's software events of perf on threads of other processes,
// and reads their records. One kind of event is a clock of a thread's CPU time. Its
// overflow copies registers and stack into a ring, or sends a signal. The other kind is a
// watch, which reports new threads.
//
// Source: perf_event_open(2); Linux include/uapi/linux/perf_event.h (records and their
// layout), arch/x86/include/uapi/asm/perf_regs.h and arch/arm64/include/uapi/asm/perf_regs.h
// (register numbers), Documentation/admin-guide/perf-security.rst (perf_event_paranoid and
// perf_event_mlock_kb).
//
// Glossary. An *event* counts a thread's CPU time in nanoseconds. A *period* is the
// CPU time between two overflows. A *hit* is an overflow that was recorded. A *ring* is
// memory that the kernel writes records to and the tool reads. *Lost* are records for which
// the ring had no room.
//
// Strategy. The cpu-clock event runs on a high-resolution timer, not on the kernel's tick.
// Events of one CPU may share a ring, so that locked memory does not grow with the number of
// threads. Everything works for an unprivileged user at perf_event_paranoid 2 on processes of
// the same user: the event then excludes the kernel, whose hits are dropped, and the count
// still includes the kernel's time. A record's sizes are checked, however the ring was written.
//
// Known gaps: no hardware events, no call chains of the kernel, no 32-bit targets. Where
// perf_event_paranoid is 3 or more, or a container's filter refuses the call, every call
// fails with ErrRefused.
package perfevent

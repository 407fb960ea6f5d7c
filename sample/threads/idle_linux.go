package threads

// A process's clock is the sum of its threads' clocks. A thread's clock advances when the thread gives up its
// processor, and at the kernel's ticks while it runs. Two readings with the same value prove two facts:
//
//   - No thread ran and stopped between them.
//   - A thread that runs at the later reading started after the last tick before it.
//
// So a thread that runs at the time of a reading may have started before it, without a trace in the clock. A
// later reading with the same value, at least one tick after the first, rules this out.
//
// Source: the kernel's update_curr and thread_group_cputime. On a processor without ticks (nohz_full), a
// thread with a timer on its clock still has ticks. Any other thread has one a second.

// IdleSpan is a period in which the clock of a process did not move.
type IdleSpan struct {
	Till int64 // no thread ran between the clock's last move and this time; 0 = unknown
}

// How often the clock is read: for each reading, the kernel adds up the clocks of all threads, at 0.2 us
// each.
const (
	lookEvery  = 80e6  // nanoseconds, while the clock does not move
	lookRarely = 640e6 // while it moves
)

// clock is the result of the readings of a process's clock. Times are in nanoseconds.
type clock struct {
	ran      int64
	known    bool
	Idle     bool      // the last two readings were equal
	at       int64     // time of the last reading
	every    int64     // interval between readings
	mark     int64     // a reading since the last move; a tick later, no thread ran before it
	IdleSpan *IdleSpan // since the last move
}

// due reports whether the clock has to be read now. The system's time may have been set back.
func (c *clock) due(now int64) bool { return now < c.at || now-c.at >= c.every }

// saw handles a reading that began at now.
func (c *clock) saw(now, ran int64, ok bool) {
	c.Idle = ok && c.known && ran == c.ran
	c.ran, c.known, c.at = ran, ok, now
	switch {
	case !c.Idle:
		c.every = min(max(2*c.every, lookEvery), lookRarely)
		c.IdleSpan, c.mark = &IdleSpan{}, now
		return
	case now < c.mark: // the time has been set back
		c.IdleSpan, c.mark = &IdleSpan{}, now
	case now-c.mark >= SlowTick:
		c.IdleSpan.Till, c.mark = c.mark, now
	}
	c.every = lookEvery
}

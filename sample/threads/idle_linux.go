package threads

// A process's clock tells whether any of its threads has run: it is the sum of theirs, and
// each moves by what it has run when it gives its processor back, and at the kernel's ticks
// while it has one. So between two looks that show the same
//   - no thread has run and stopped,
//   - none has run for longer than from the last tick to the later look.
// The latter is what has to be minded: a thread that runs at a look may have begun before it.
// That it has not is certain once a later look, a tick and more after it, shows the same.
//
// Source: the kernel's update_curr and thread_group_cputime. On a processor without ticks
// (nohz_full) a thread that has a timer of its clock has them all the same, any other one
// a second.

// IdleSpan is a time in which the clock of a process did not move.
type IdleSpan struct {
	Till int64 // until then no thread has run since the clock moved last; 0 = not known
}

// How often the clock is looked at: the kernel adds up the threads' for it, which takes it
// 0.2 us for each.
const (
	lookEvery  = 80e6  // nanoseconds, while it stands still
	lookRarely = 640e6 // while it moves
)

// clock is what looks at a process's clock have shown. Times are in nanoseconds.
type clock struct {
	ran   int64
	known bool
	Idle  bool      // the last two looks have shown the same
	at    int64     // when the last was
	every int64     // between looks
	mark  int64     // of a look since it moved: till then nobody has run, if that lasts for a tick
	Lull  *IdleSpan // since it moved last
}

// due reports whether it is time for a look. Time may have been set back.
func (c *clock) due(now int64) bool { return now < c.at || now-c.at >= c.every }

// saw takes into account what a look that began now has shown.
func (c *clock) saw(now, ran int64, ok bool) {
	c.Idle = ok && c.known && ran == c.ran
	c.ran, c.known, c.at = ran, ok, now
	switch {
	case !c.Idle:
		c.every = min(max(2*c.every, lookEvery), lookRarely)
		c.Lull, c.mark = &IdleSpan{}, now
		return
	case now < c.mark: // the time has been set back
		c.Lull, c.mark = &IdleSpan{}, now
	case now-c.mark >= SlowTick:
		c.Lull.Till, c.mark = c.mark, now
	}
	c.every = lookEvery
}

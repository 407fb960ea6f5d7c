package threads

import "time"

// Stretches decides which threads have perf events only for stretches of time. At each switch, the kernel
// stops and restarts all events of the thread, which takes 2 to 10 us. So a thread that switches often has
// events only in stretches. Time is divided into cells. In each cell, one stretch begins at a random moment,
// so no work of the program can stay in step with the stretches. It covers one of Parts of the cell, and the
// period of its events is shorter by Parts. So a sample represents as much processor time as without
// stretches.
type Stretches struct {
	Cost       float64       // share of the program's processor time that events may cost, about
	LeastParts int           // cells are at least this many times as long as their stretches
	MostParts  int           // and at most this many times
	Shortest   time.Duration // of a stretch
	LeastCell  time.Duration // of a cell

	On      bool          // the process has threads with stretches
	Open    bool          // a stretch is in progress
	Parts   int           // of cells that begin now
	Length  time.Duration // of the last stretch
	Refused time.Time     // when there was no room for the copies
	Next    time.Time     // when the stretch ends or the next one begins
	Created int           // threads since the last count

	cell       time.Time     // when the current cell began
	cellLength time.Duration // of that cell
	counted    time.Time     // when the switches were counted last
	counts     int
}

const (
	// LongestCell bounds the time between two stretches.
	LongestCell = 10 * time.Second
	// refusedFor is how long after Refused the process has no stretches. Others may free the lockable memory.
	refusedFor = time.Minute
	// cellPerEvent is the least length of a cell, for each event of a stretch. The tool needs about 20 us to
	// open and close one.
	cellPerEvent = 6 * time.Millisecond
	// switchCost is what a switch costs a thread with events, in nanoseconds: the kernel sets the processor's
	// timer twice.
	switchCost = 10e3
	// A thread with fewer switches per second keeps its events.
	leastOften = 100
	// The process gets stretches if they lower the cost by a factor of at least leastParts.
	leastParts = 2
	// countSoon is the time before the second count, and before the third: events slow down a program that
	// switches often, so it may switch more once it has stretches.
	countSoon  = 500 * time.Millisecond
	countEvery = 4 * time.Second
	// mostCreated is how many threads a process with stretches may create between two counts.
	mostCreated = 8
)

// Ready reports whether the kernel may be asked for the copies.
func (s *Stretches) Ready(now time.Time) bool { return now.Sub(s.Refused) >= refusedFor }

// Wanted reports whether the process should have stretches. When it is due, Wanted counts how often the tasks
// have got a processor, and sets Task.Often.
func (s *Stretches) Wanted(now time.Time, tasks map[uint32]*Task) bool {
	passed, every := now.Sub(s.counted), countEvery
	if s.counts == 1 || s.counts == 2 {
		every = countSoon
	}
	if passed < every {
		return s.On
	}
	var all Counters
	for _, t := range tasks {
		c := t.sinceCount()
		turns, least := leastOften*passed.Seconds(), float64(leastParts)
		if t.Often {
			turns, least = turns/2, least/2
		}
		t.Often = t.mayStretch() && float64(c.Turns) >= turns && s.parts(c, 0) >= least
		if t.Often {
			all.Cpu, all.Turns = all.Cpu+c.Cpu, all.Turns+c.Turns
		}
	}
	parts := s.parts(all, passed/4)
	many := parts >= leastParts || s.On && parts >= leastParts/2
	many = many && s.Created <= mostCreated && s.counts > 0
	s.Parts = max(s.LeastParts, min(int(parts), s.MostParts), 1)
	s.counted, s.Created = now, 0
	s.counts++
	return many
}

// mayStretch reports whether stretches can sample the thread.
func (t *Task) mayStretch() bool { return t.Stretched || t.Event != nil && !t.Copied && !t.Uncopied }

// parts returns by how much stretches must lower the cost of the switches in c. Threads that have used less
// processor time than least count as if they had used least.
func (s *Stretches) parts(c Counters, least time.Duration) float64 {
	return float64(c.Turns) * switchCost / (s.Cost * max(float64(c.Cpu), float64(least), 1))
}

// sinceCount returns what the thread has used since the last call.
func (t *Task) sinceCount() Counters {
	prev := t.atCount
	t.atCount = t.Last
	return Counters{Cpu: t.Last.Cpu - min(prev.Cpu, t.Last.Cpu),
		Turns: t.Last.Turns - min(prev.Turns, t.Last.Turns)}
}

// Start begins the first cell. events is the number of events of a stretch, draw a random number from 0 to 1.
func (s *Stretches) Start(now time.Time, events int, draw float64) {
	s.On, s.Open, s.cell = true, false, now
	s.measure(events)
	s.Next = now.Add(time.Duration(draw * float64(s.cellLength)))
}

// Begin begins a stretch with a number of events.
func (s *Stretches) Begin(now time.Time, events int) {
	s.measure(events)
	s.Open, s.Next = true, now.Add(s.Length)
}

// End ends a stretch. If the next one begins during this one, it begins now.
func (s *Stretches) End(now time.Time, draw float64) {
	if s.cell = s.cell.Add(s.cellLength); now.Sub(s.cell) > s.cellLength {
		s.cell = now // the tool is late
	}
	s.Open, s.Next = false, s.cell.Add(time.Duration(draw*float64(s.cellLength)))
	if s.Next.Before(now) {
		s.Next = now
	}
}

// measure sets the lengths of a cell and its stretch.
func (s *Stretches) measure(events int) {
	parts := time.Duration(s.Parts)
	s.cellLength = min(max(s.Shortest*parts, s.LeastCell, time.Duration(events)*cellPerEvent), LongestCell)
	s.Length = s.cellLength / parts
}

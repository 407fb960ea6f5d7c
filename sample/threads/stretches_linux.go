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
	Shortest   time.Duration // of a stretch

	On      bool          // the process has threads with stretches
	Open    bool          // a stretch is in progress
	Parts   int           // of cells that begin now
	Length  time.Duration // of the last stretch
	Refused time.Time     // when there was no room for the copies
	Next    time.Time     // when the stretch ends or the next one begins
	Created int           // threads since the last count

	cell    time.Time     // when the current cell began
	lasts   time.Duration // how long the cell of the last stretch is
	counted time.Time     // when the switches were counted last
	counts  int
}

const (
	// refusedFor is how long after Refused the process has no stretches. Others may free the lockable memory.
	refusedFor = time.Minute
	// longestCell bounds the time between two stretches.
	longestCell = 10 * time.Second
	// cellPerEvent is the least length of a cell, for each event of a stretch. The tool needs about 20 us to
	// open and close one.
	cellPerEvent = 6 * time.Millisecond
	// switchCost is what a switch costs a thread with events, in nanoseconds: the kernel sets the processor's
	// timer twice.
	switchCost = 10e3
	// A thread with fewer switches per second keeps its events.
	leastOften = 100
	// The process gets stretches if they lower the cost by at least leastParts.
	leastParts, mostParts = 2, 50
	countSoon             = 500 * time.Millisecond // until the second count
	countEvery            = 4 * time.Second
	// mostCreated is how many threads a process with stretches may create between two counts.
	mostCreated = 8
)

// Ready reports whether the kernel may be asked for the copies.
func (s *Stretches) Ready(now time.Time) bool { return now.Sub(s.Refused) >= refusedFor }

// Wanted reports whether the process should have stretches. When it is due, Wanted counts how often the tasks
// have got a processor, and sets Task.Often.
func (s *Stretches) Wanted(now time.Time, tasks map[uint32]*Task) bool {
	passed, every := now.Sub(s.counted), countEvery
	if s.counts == 1 {
		every = countSoon
	}
	if passed < every {
		return s.On
	}
	var all Counters
	for _, t := range tasks {
		c := t.sinceCount()
		least := leastOften * passed.Seconds()
		if t.Often {
			least /= 2
		}
		t.Often = float64(c.Turns) >= least && s.parts(c, 0) >= leastParts
		if t.Often {
			all.Cpu, all.Turns = all.Cpu+c.Cpu, all.Turns+c.Turns
		}
	}
	parts := s.parts(all, passed/4)
	many := parts >= leastParts || s.On && parts >= leastParts/2
	many = many && s.Created <= mostCreated && s.counts > 0
	s.Parts = max(s.LeastParts, min(int(parts), mostParts), 1)
	s.counted, s.Created = now, 0
	s.counts++
	return many
}

// parts returns by how much stretches must lower the cost of the switches in c. Threads that need little of a
// processor count as if they had used least.
func (s *Stretches) parts(c Counters, least time.Duration) float64 {
	return float64(c.Turns) * switchCost / (s.Cost * max(float64(c.Cpu), float64(least), 1))
}

// sinceCount returns what the thread has used since the last call.
func (t *Task) sinceCount() Counters {
	was := t.atCount
	t.atCount = t.Last
	return Counters{Cpu: t.Last.Cpu - min(was.Cpu, t.Last.Cpu),
		Turns: t.Last.Turns - min(was.Turns, t.Last.Turns)}
}

// Begin begins a stretch with a number of events.
func (s *Stretches) Begin(now time.Time, events int) {
	parts := time.Duration(s.Parts)
	s.lasts = min(max(s.Shortest*parts, time.Duration(events)*cellPerEvent), longestCell)
	s.Open, s.Length = true, s.lasts/parts
	s.Next = now.Add(s.Length)
}

// End ends a stretch. draw is a random number from 0 to 1.
func (s *Stretches) End(now time.Time, draw float64) {
	if s.cell = s.cell.Add(s.lasts); now.Sub(s.cell) > s.lasts {
		s.cell = now // the tool is late
	}
	s.Open, s.Next = false, s.cell.Add(time.Duration(draw*float64(s.lasts)))
}

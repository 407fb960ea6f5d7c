package threads

import "time"

// Stretches decides which threads have perf events only for stretches of time. At each switch, the kernel
// stops and restarts all events of the thread, which takes 2 to 10 us. So a thread that switches often has
// events only in stretches. Time is divided into cells. In each cell, one stretch begins at a random moment,
// so no work of the program can stay in step with the stretches. It covers one of Parts of the cell, and the
// period of its events is shorter by Parts. So a sample represents as much CPU time as without
// stretches.
type Stretches struct {
	Cost       float64       // share of the program's CPU time that events may cost, about
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
	until      uint64    // the last stretch should have ended then, by the clock of records
	ended      time.Time // when it ended
	lastParts  int       // Parts when it began
	ends       int       // stretches that have ended
	wall       float64   // recent time, nanoseconds
	covered    float64   // what the recent stretches represent of it
	hitCost    float64   // nanoseconds that a thread needs for a hit
	hits       float64   // of recent stretches
	goodHits   float64   // of them, those that count
	began      time.Time // when the last stretch began
	in, all    turns     // of recent stretches, and of them with the time before each
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

// PlanStretches returns stretches for samples with a period in nanoseconds. rare is set for the agent: its
// stretches are long, because each one wakes it up. Others are short: a thread that does something else now
// and then is seen at more moments.
func PlanStretches(period int64, rare bool) Stretches {
	const perSample, leastPeriod, mostParts = 40e3, 50_000, 50 // nanoseconds
	s := Stretches{Cost: max(0.01, perSample/float64(period)), LeastParts: 4,
		MostParts: int(min(period/leastPeriod, mostParts)), Shortest: 5 * time.Millisecond,
		LeastCell: 4 * time.Duration(period)} // so a stretch has several samples
	if rare {
		s.Cost, s.LeastParts, s.Shortest = 0.005, 20, 40*time.Millisecond
	}
	return s
}

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
			all.add(c)
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
func (t *Task) mayStretch() bool {
	return !t.WaitsOften && (t.Stretched || t.Event != nil && !t.Copied && !t.Uncopied && !t.undecided)
}

// parts returns by how much stretches must lower the cost of the switches in c. Threads that have used less
// CPU time than least count as if they had used least.
func (s *Stretches) parts(c Counters, least time.Duration) float64 {
	return float64(c.Turns) * switchCost / (s.Cost * max(float64(c.Cpu), float64(least), 1))
}

// sinceCount returns what the thread has used since the last call.
func (t *Task) sinceCount() Counters {
	prev := t.atCount
	t.atCount = t.Last
	return t.Last.since(prev)
}

// since returns what was used since a previous reading.
func (c Counters) since(prev Counters) Counters {
	return Counters{Cpu: c.Cpu - min(prev.Cpu, c.Cpu), Turns: c.Turns - min(prev.Turns, c.Turns)}
}

// RanSince returns the share of the time since a previous reading in which the thread had a processor, or 1
// if it kept its processor. Threads that yield to each other in loops are always runnable, but each has a
// processor for a part of the time only.
func (c Counters) RanSince(prev Counters) float64 {
	ran, waited := c.Cpu-min(prev.Cpu, c.Cpu), c.Wait-min(prev.Wait, c.Wait)
	if c.Turns == prev.Turns || ran+waited == 0 {
		return 1
	}
	return float64(ran) / float64(ran+waited)
}

func (c *Counters) add(o Counters) { c.Cpu, c.Turns = c.Cpu+o.Cpu, c.Turns+o.Turns }

// Start begins the first cell. events is the number of events of a stretch, draw a random number from 0 to 1.
func (s *Stretches) Start(now time.Time, events int, draw float64) {
	s.On, s.Open, s.cell, s.ended = true, false, now, now
	s.ends, s.wall, s.covered = 0, 0, 0
	s.measure(events)
	s.Next = now.Add(time.Duration(draw * float64(s.cellLength)))
}

// Begin begins a stretch with a number of events. clock is now by the clock of records, in nanoseconds.
func (s *Stretches) Begin(now time.Time, clock uint64, events int) {
	s.measure(events)
	s.lastParts = s.Parts
	s.Open, s.began, s.Next = true, now, now.Add(s.Length)
	s.until = clock + uint64(s.Length)
}

// turns is how often threads got a processor, in the sum of their nanoseconds.
type turns struct{ count, time float64 }

func (t turns) rate() float64 { return t.count / max(t.time, 1) }

func (t turns) older() turns { return turns{t.count * recent, t.time * recent} }

// Armed records how long it took, in nanoseconds, to open the events of all threads after Begin. On average,
// a thread's stretch begins after half of that.
func (s *Stretches) Armed(took uint64) {
	s.until += took / 2
	s.Next = s.Next.Add(time.Duration(took / 2))
	s.began = s.began.Add(time.Duration(took / 2))
}

// Left adds what one thread has used in the stretch that ends now, and in the time before it.
func (s *Stretches) Left(now time.Time, in, before Counters) {
	s.in.count += float64(in.Turns)
	s.in.time += float64(now.Sub(s.began))
	s.all.count += float64(in.Turns + before.Turns)
	s.all.time += float64(now.Sub(s.ended))
}

// slowdown returns how much more often the threads got a processor than in stretches. The hits make work in
// a stretch longer. So a program does less there if it starts new work only after the last is done.
func (s *Stretches) slowdown() float64 {
	if s.in.count < enoughTurns {
		return 1
	}
	return max(1./mostFactor, min(s.all.rate()/s.in.rate(), mostFactor))
}

// End ends a stretch. If the next one begins during this one, it begins now.
func (s *Stretches) End(now time.Time, draw float64) {
	s.wall = s.wall*recent + float64(now.Sub(s.ended))
	s.covered = s.covered*recent + float64(s.Length)*float64(s.lastParts)
	s.in, s.all = s.in.older(), s.all.older()
	s.ended = now
	s.ends++
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

// stretchUse is what is known about the stretches of a thread. Its sums are of whole cells: of stretches that
// have ended, and of the time before each of them.
type stretchUse struct {
	from, till Counters // when the last stretch began and ended
	entered    bool     // from is known
	left       bool     // till is known
	before     Counters // what the thread used between the last stretch and the one before
	whole      bool     // before is known
	total      float64  // CPU time
	user       float64  // what the samples in user code represent
	kernel     float64  // the samples in the kernel, a period each
	userNow    float64  // the same of the stretch in progress
	kernelNow  float64
}

const (
	recent      = 0.99 // each stretch lowers the weight of earlier ones by this factor
	enoughEnds  = 8    // stretches, to tell how much of the time they represent
	enoughTurns = 100  // of all threads in stretches, to tell how much work they do there
	enoughHits  = 32   // samples of a thread, to tell how much of its time in the kernel has none
	mostFactor  = 4    // how many periods a sample represents, at most
	// unknownHitCost is used if the cost of a hit cannot be measured.
	unknownHitCost = 8e3
	// hitsPerPeriod bounds the period in a stretch: it is as long as that many hits. A hit that counts has up
	// to three copies (see cpuring), and the program needs time, too.
	hitsPerPeriod = 8
)

// Enter records what a thread has used when a stretch begins for it.
func (t *Task) Enter(c Counters) {
	k := &t.use
	k.before, k.whole = Counters{}, k.left
	if k.left {
		k.before = c.since(k.till)
	}
	k.from, k.entered = c, true
}

// Unstretch ends the stretches of a thread. What it uses until the next one belongs to no cell.
func (t *Task) Unstretch() { t.Stretched, t.use.left = false, false }

// Leave records what a thread has used when a stretch ends for it. ok is false if that is not known. Leave
// returns what the thread used in the stretch and before it, if both are known.
func (t *Task) Leave(c Counters, ok bool) (in, before Counters, whole bool) {
	k := &t.use
	if ok = ok && k.entered; ok && k.whole {
		in, before, whole = c.since(k.from), k.before, true
		k.total += float64(c.since(k.from).Cpu + k.before.Cpu)
		k.user, k.kernel = k.user+k.userNow, k.kernel+k.kernelNow
	}
	k.till, k.left, k.entered, k.userNow, k.kernelNow = c, ok, false, 0, 0
	return in, before, whole
}

// Late reports whether a record is later than the end of the last stretch should have been. Such samples do
// not count. The tool closes a stretch late while the program keeps the processors busy, so they would count
// for too much.
func (s *Stretches) Late(clock uint64) bool { return clock > s.until }

// Fit sets how many nanoseconds a thread needs for a hit; 0 means that it is not known. The hits of a stretch
// leave time for the program, so stretches with expensive hits are a larger part of their cells.
func (s *Stretches) Fit(hitCost uint64, period int64) {
	s.hitCost = float64(hitCost)
	if hitCost == 0 {
		s.hitCost = unknownHitCost
	}
	most := max(int(float64(period)/(hitsPerPeriod*s.hitCost)), leastParts)
	s.LeastParts, s.MostParts = min(s.LeastParts, most), min(s.MostParts, most)
	s.Parts = max(s.LeastParts, min(s.Parts, s.MostParts), 1)
}

// Count adds the hits of a stretch, and those of them that count.
func (s *Stretches) Count(all, counted uint64) {
	s.hits = s.hits*recent + float64(all)
	s.goodHits = s.goodHits*recent + float64(counted)
}

// factor returns how many periods of user code a sample represents: more than 1 if stretches came later than
// planned or held less work, and less than 1 because the samples show the time of the hits as the program's
// own.
func (s *Stretches) factor(period int64) float64 {
	own := 1 - s.hitCost*s.hits/max(s.goodHits, 1)*float64(s.lastParts)/float64(period)
	own = max(own, 1./mostFactor) * s.slowdown()
	if s.ends >= enoughEnds && s.covered > 0 {
		own *= s.wall / s.covered
	}
	return max(1./mostFactor, min(own, mostFactor))
}

// Weigh returns the CPU time that a sample in a stretch represents. A thread is assumed to do as much work in
// user code between two switches in a stretch as at other times. At each switch, the kernel stops and
// restarts the events, so the thread is in the kernel for longer in a stretch. The samples of that time
// together represent what those of user code leave of the thread's CPU time.
func (s *Stretches) Weigh(t *Task, period int64, kernel bool) uint64 {
	k := &t.use
	if !kernel {
		factor := s.factor(period)
		k.userNow += factor * float64(period)
		return uint64(factor * float64(period))
	}
	k.kernelNow += float64(period)
	factor := 1.
	if k.kernel > 0 && k.user+k.kernel >= enoughHits*float64(period) {
		factor = min(max((k.total-k.user)/k.kernel, 1./mostFactor), mostFactor)
	}
	return uint64(factor * float64(period))
}

// NotLocated estimates how much of the CPU time spent was in the kernel, if the kernel permits no
// samples of itself. It returns 0 until there are enough samples for that.
func (t *Task) NotLocated(spent uint64, period int64) uint64 {
	k := &t.use
	if k.total < enoughHits*float64(period) {
		return 0
	}
	return uint64(float64(spent) * max(0, k.total-k.user) / k.total)
}

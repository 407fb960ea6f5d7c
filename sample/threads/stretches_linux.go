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
	slowdown   slowdown
	lastParts  int // Parts when the last stretch began
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
	return t.Last.since(prev)
}

// since returns what was used since a previous reading.
func (c Counters) since(prev Counters) Counters {
	return Counters{Cpu: c.Cpu - min(prev.Cpu, c.Cpu), Turns: c.Turns - min(prev.Turns, c.Turns)}
}

// Start begins the first cell. events is the number of events of a stretch, draw a random number from 0 to 1.
func (s *Stretches) Start(now time.Time, events int, draw float64) {
	s.On, s.Open, s.cell, s.slowdown = true, false, now, slowdown{}
	s.measure(events)
	s.Next = now.Add(time.Duration(draw * float64(s.cellLength)))
}

// Begin begins a stretch with a number of events.
func (s *Stretches) Begin(now time.Time, events int) {
	s.measure(events)
	s.lastParts = s.Parts
	s.Open, s.Next = true, now.Add(s.Length)
}

// End ends a stretch. If the next one begins during this one, it begins now.
func (s *Stretches) End(now time.Time, draw float64) {
	s.slowdown.compare(s.lastParts)
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

// In a stretch, each switch takes longer than outside: the kernel stops and restarts the events. So threads
// that switch often do less of their own work in a stretch. The number of their switches tells how much less.
type slowdown struct {
	switches     float64  // recent switches of all threads
	extrapolated float64  // what it would be by those in stretches, if these were as fast
	density      float64  // recent switches per nanosecond of processor time in stretches
	inside       Counters // what all threads used in the last stretch
	before       Counters // what they used between it and the one before
}

// stretchUse is what is known about the stretches of a thread. Its sums are of whole cells: of stretches that
// have ended, and of the time before each of them.
type stretchUse struct {
	from, till Counters // when the last stretch began and ended
	entered    bool     // from is known
	left       bool     // till is known
	before     Counters // what the thread used between the last stretch and the one before
	whole      bool     // before is known
	density    float64  // switches per nanosecond of processor time in the last stretch
	total      float64  // processor time
	user       float64  // what the samples in user code represent
	kernel     float64  // the samples in the kernel, a period each
	userNow    float64  // the same of the stretch in progress
	kernelNow  float64
}

const (
	recent      = 0.97 // each stretch lowers the weight of earlier ones by this factor
	enoughTurns = 30   // in stretches, to tell how much slower they are
	oftenEnough = 4    // a thread that switches less than 1/oftenEnough as often as all is not slowed down
	enoughHits  = 32   // samples of a thread, to tell how much of its time in the kernel has none
	mostFactor  = 4    // how many periods a sample represents, at most
	// hitCost is how many nanoseconds the kernel needs for the copies of one period in a stretch. The samples
	// show this time as the program's own, at the place of the copy.
	hitCost = 15e3
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

// Leave records what a thread has used when a stretch ends for it. ok is false if that is not known.
func (s *Stretches) Leave(t *Task, c Counters, ok bool) {
	k, slow := &t.use, &s.slowdown
	if ok = ok && k.entered; ok {
		used := c.since(k.from)
		k.density = used.density()
		if k.whole {
			k.total += float64(used.Cpu + k.before.Cpu)
			k.user, k.kernel = k.user+k.userNow, k.kernel+k.kernelNow
			slow.inside.add(used)
			slow.before.add(k.before)
		}
	}
	k.till, k.left, k.entered, k.userNow, k.kernelNow = c, ok, false, 0, 0
}

// compare adds the switches of the stretch that has ended, and of the time before it, to the recent ones.
// The cell was parts times as long as the stretch.
func (k *slowdown) compare(parts int) {
	turns := float64(k.inside.Turns)
	if all := turns + float64(k.before.Turns); all > 0 {
		k.switches = k.switches*recent + all
		k.extrapolated = k.extrapolated*recent + turns*float64(parts)
	}
	if turns >= enoughTurns {
		k.density = k.inside.density()
	}
	k.inside, k.before = Counters{}, Counters{}
}

// factor returns how many periods of user code a sample represents: 1, or more if threads do more work
// outside of stretches.
func (k *slowdown) factor(parts int, period int64) float64 {
	if k.extrapolated < enoughTurns*float64(parts) {
		return 1
	}
	own := 1 - hitCost*float64(parts)/float64(period)
	return max(1, min(k.switches/k.extrapolated*own, mostFactor))
}

// density returns the switches per nanosecond of processor time.
func (c Counters) density() float64 { return float64(c.Turns) / float64(max(c.Cpu, 1)) }

func (c *Counters) add(o Counters) { c.Cpu, c.Turns = c.Cpu+o.Cpu, c.Turns+o.Turns }

// Weigh returns the processor time that a sample in a stretch represents.
func (s *Stretches) Weigh(t *Task, period int64, kernel bool) uint64 {
	k, factor := &t.use, 1.
	if k.density*oftenEnough >= s.slowdown.density {
		factor = s.slowdown.factor(s.lastParts, period)
	}
	if !kernel {
		k.userNow += factor * float64(period)
		return uint64(factor * float64(period))
	}
	k.kernelNow += float64(period)
	if k.kernel > 0 && k.user+k.kernel >= enoughHits*float64(period) {
		factor = min(max((k.total-k.user)/k.kernel, 1./mostFactor), mostFactor)
	}
	return uint64(factor * float64(period))
}

// NotLocated estimates how much of the processor time spent was in the kernel, if the kernel permits no
// samples of itself. It returns 0 until there are enough samples for that.
func (t *Task) NotLocated(spent uint64, period int64) uint64 {
	k := &t.use
	if k.total < enoughHits*float64(period) {
		return 0
	}
	return uint64(float64(spent) * max(0, k.total-k.user) / k.total)
}

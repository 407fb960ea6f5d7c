package collect

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Accounting. A sample carries the period of the clock. The engine sends the exact
// CPU time of each thread (wire.Usage), and a thread's samples are scaled to it.
// Time without samples becomes separate root frames, one per cause. So the profile of a
// process adds up to the CPU time of the process.

const (
	// fewSamples is the expected number of samples below which a thread is scaled together
	// with others: the first period of a thread begins at random, so that only their sum
	// is right.
	fewSamples = 10
	// maxStretch limits how many usual periods one sample may represent. A thread's time beyond that was not
	// sampled, whatever the reason.
	maxStretch = 4
	// maxUsages bounds the threads whose time is kept. The time of others is part of the
	// process's remainder.
	maxUsages = 1 << 20
	// maxNanos bounds one time, so that sums stay far from overflowing.
	maxNanos = 1 << 56
	// usualRate is the rate, in samples per second, of a stream that does not state its rate.
	usualRate = 99
)

// plus adds a time or a size to a sum, and keeps both in bounds: a hostile stream has any values.
func plus(sum, v uint64) uint64 { return min(sum+min(v, maxNanos), maxNanos) }

// usage is the time of one thread ID by cause; wire.CauseNone is time that was watched.
type usage [wire.NumCauses]struct{ cpu, kernel uint64 }

// usage takes the CPU time of a thread or of the process.
func (p *Process) usage(m *wire.Usage) {
	if m.Cause >= wire.NumCauses {
		m.Cause = wire.CauseTool
	}
	m.CPUNanos = min(m.CPUNanos, maxNanos)
	if m.TID == wire.ProcessTID {
		p.clock = m
		return
	}
	u := p.usages[m.TID]
	if u == nil {
		if len(p.usages) >= maxUsages {
			return
		}
		u = new(usage)
		p.usages[m.TID] = u
	}
	at := &u[m.Cause]
	at.cpu, at.kernel = plus(at.cpu, m.CPUNanos), plus(at.kernel, min(m.KernelNanos, m.CPUNanos))
}

// watched returns the time that samples may locate, and the time in the kernel that no sample
// locates. The times by cause, which were not sampled, stay in u. If a thread has samples but no
// watched time, its causes are wrong, and all of its time counts as watched.
func (u *usage) watched(sampled bool) (located, kernel uint64) {
	if w := &u[wire.CauseNone]; w.cpu == 0 && sampled {
		for i := range u {
			w.cpu += u[i].cpu
			w.kernel += u[i].kernel
			if i != wire.CauseNone {
				u[i].cpu = 0
			}
		}
	}
	w := u[wire.CauseNone]
	return w.cpu - w.kernel, w.kernel
}

// sampleSet is the samples that are scaled together.
type sampleSet struct {
	stacks []*export.Stack
	count  int64
	weight uint64 // nanoseconds before scaling
}

func (s *sampleSet) add(o *sampleSet) {
	s.stacks = append(s.stacks, o.stacks...)
	s.count += o.count
	s.weight += o.weight
}

// scale sets the times of all stacks so that their sum is target, to the nanosecond.
func (s *sampleSet) scale(target uint64) {
	var seen, given uint64
	for _, st := range s.stacks {
		seen = min(seen+uint64(st.CPUNanos), s.weight) // of a hostile stream the sums overflow
		hi, lo := bits.Mul64(target, seen)
		upTo, _ := bits.Div64(hi, lo, s.weight)
		st.CPUNanos = int64(upTo - given)
		given = upTo
	}
}

// account is the bookkeeping of one process.
type account struct {
	p       *Process
	sets    map[uint64]*sampleSet // by thread ID: those with CPU samples
	usages  map[uint64]usage
	period  uint64 // nanoseconds of a sample, before scaling
	usual   uint64 // and after it: the median over samples, at least period
	kernel  map[uint64]uint64
	missing [wire.NumCauses]uint64 // time without samples
	total   uint64                 // of all threads with a usage
}

// newAccount collects the CPU samples of a process. The first of stacks are those of p.stacks; others
// have no CPU time.
func newAccount(p *Process, stacks []export.Stack) *account {
	a := &account{p: p, sets: map[uint64]*sampleSet{},
		usages: map[uint64]usage{}, kernel: map[uint64]uint64{}}
	var all sampleSet
	for i := range stacks {
		if stacks[i].CPUNanos <= 0 {
			continue
		}
		one := sampleSet{[]*export.Stack{&stacks[i]}, stacks[i].CPUCount, uint64(stacks[i].CPUNanos)}
		tid := p.stacks[i].tid
		if a.sets[tid] == nil {
			a.sets[tid] = &sampleSet{}
		}
		a.sets[tid].add(&one)
		all.add(&one)
	}
	for tid, u := range p.usages {
		a.usages[tid] = *u
	}
	switch {
	case all.count > 0:
		a.period = max(1, all.weight/uint64(all.count))
	case p.hello != nil && p.hello.RateMilliHz > 0:
		a.period = max(1, 1e12/p.hello.RateMilliHz)
	default:
		a.period = 1_000_000_000 / usualRate
	}
	return a
}

// threads scales the samples of all threads, and accounts for the time without samples. Where every thread
// was watched, the time of those that ended before the tool saw them goes to all samples of threads with few.
func (a *account) threads() {
	located := map[uint64]uint64{}
	for _, tid := range slices.Sorted(maps.Keys(a.usages)) {
		located[tid] = a.thread(tid)
	}
	a.usual = a.usualPeriod(located)
	var few sampleSet
	var fewNanos uint64
	for _, tid := range slices.Sorted(maps.Keys(located)) {
		set := a.sets[tid]
		if located[tid] >= fewSamples*a.period {
			a.scale(set, located[tid], a.lacking(located[tid]))
			continue
		}
		fewNanos += located[tid]
		if set != nil {
			few.add(set)
		}
	}
	cause := wire.CauseShort
	if fewNanos < fewSamples*a.period { // together worth few samples
		cause = wire.CauseRate
	}
	if a.p.clock != nil {
		others, left := a.others()
		if a.p.clock.Cause != wire.CauseNone {
			a.rest(&others, left)
		} else if few.add(&others); left > 0 {
			fewNanos, cause = fewNanos+left, wire.CauseShort
		}
	}
	a.scale(&few, fewNanos, cause)
}

// lacking returns why a watched thread with this time has too few samples. The mean period of all samples may
// be far below the requested one, because a process is sampled more often while it starts.
func (a *account) lacking(nanos uint64) int {
	if hello := a.p.hello; hello != nil && hello.RateMilliHz > 0 &&
		nanos/1_000_000 < fewSamples*1_000_000/hello.RateMilliHz {
		return wire.CauseRate
	}
	return wire.CauseTool
}

// thread accounts for the time of a thread and returns the part for its samples.
func (a *account) thread(tid uint64) uint64 {
	u := a.usages[tid]
	located, kernel := u.watched(a.sets[tid] != nil)
	a.kernel[tid] = kernel
	a.total += located + kernel
	for cause := wire.CauseNone + 1; cause < wire.NumCauses; cause++ {
		a.missing[cause] += u[cause].cpu
		a.total += u[cause].cpu
	}
	return located
}

// usualPeriod returns the usual time of a sample, at least the period. It is the median over
// samples, so that a thread with too few of them does not set its own bound.
func (a *account) usualPeriod(located map[uint64]uint64) uint64 {
	type threadPeriod struct{ nanos, count uint64 }
	var all []threadPeriod
	var total, seen uint64
	for tid, set := range a.sets {
		if nanos, ok := located[tid]; ok {
			all = append(all, threadPeriod{nanos / uint64(set.count), uint64(set.count)})
			total += uint64(set.count)
		}
	}
	slices.SortFunc(all, func(x, y threadPeriod) int { return cmp.Compare(x.nanos, y.nanos) })
	for _, t := range all {
		if seen += t.count; 2*seen >= total {
			return max(a.period, t.nanos)
		}
	}
	return a.period
}

// scale gives samples their time, at most maxStretch usual periods each. Without samples the time is
// missing, for cause.
func (a *account) scale(set *sampleSet, target uint64, cause int) {
	if set == nil || set.count == 0 {
		a.missing[cause] += target
		return
	}
	if most := uint64(set.count) * maxStretch * a.usual; target > most && target >= fewSamples*a.period {
		a.missing[cause] += target - most
		target = most
	}
	set.scale(target)
}

// others returns the samples of threads without a usage, and the time of the process that no thread has.
func (a *account) others() (set sampleSet, left uint64) {
	for _, tid := range slices.Sorted(maps.Keys(a.sets)) {
		if _, ok := a.usages[tid]; !ok {
			set.add(a.sets[tid])
		}
	}
	return set, a.p.clock.CPUNanos - min(a.total, a.p.clock.CPUNanos)
}

// rest accounts for the time of threads that were not watched.
func (a *account) rest(others *sampleSet, left uint64) {
	if others.weight >= left && others.weight > 0 {
		others.scale(left)
		return
	}
	a.missing[a.p.clock.Cause] += left - others.weight
}

// account scales the stacks of a process, which begin at first, and adds those of time
// without samples.
func (b *builder) account(p *Process, first int) {
	a := newAccount(p, b.p.Stacks[first:])
	a.threads()
	b.kernelTime(a, first)
	if p.clock == nil {
		if len(p.usages) > 0 || b.p.Stats.CPU != nil {
			b.p.Stats.Notes = append(b.p.Stats.Notes,
				fmt.Sprintf("process %d (%s): its CPU clock is unknown, so time without samples is not shown", p.PID, p.Name))
		}
		return
	}
	b.notSampled(a)
	b.sum(a, first)
}

// kernelTime adds the time in the kernel that no sample locates: for each thread that has samples, and
// for all others together.
func (b *builder) kernelTime(a *account, first int) {
	threads := map[uint64]int{}
	for i := range a.p.stacks {
		threads[a.p.stacks[i].tid] = b.p.Stacks[first+i].Thread
	}
	at := map[int]uint64{} // by index of the thread
	for tid, nanos := range a.kernel {
		t, ok := threads[tid]
		if !ok && nanos > 0 {
			t = b.noThread()
		}
		at[t] += nanos
	}
	for _, t := range slices.Sorted(maps.Keys(at)) {
		b.unlocated(t, at[t], export.ClassKernel, export.KernelTime)
	}
}

// notSampled adds a stack for each cause of missing time.
func (b *builder) notSampled(a *account) {
	for cause, nanos := range a.missing {
		if nanos > 0 {
			b.unlocated(b.noThread(), nanos, export.ClassUnsampled,
				"["+export.Causes[cause]+"]", export.NotSampled)
		}
	}
}

// unlocated adds a stack of CPU time without samples. Its frames, leaf first, represent no code.
// For threads without samples no wall time is known, so it gets the CPU time as wall time too.
func (b *builder) unlocated(thread int, nanos uint64, class export.Class, names ...string) {
	if nanos == 0 {
		return
	}
	s := export.Stack{Thread: thread, CPUNanos: int64(nanos), Complete: true}
	for _, name := range names {
		s.Frames = append(s.Frames, b.synthetic(name, class))
	}
	s.Frames = append(s.Frames, b.root...)
	if b.p.Threads[thread].ID == 0 {
		s.WallNanos = s.CPUNanos
	}
	b.p.Stacks = append(b.p.Stacks, s)
}

// noThread returns the index of the thread for all threads without samples.
func (b *builder) noThread() int {
	const name = "threads without samples"
	for i := range b.p.Threads {
		if t := &b.p.Threads[i]; t.ID == 0 && t.Name == name {
			return i
		}
	}
	b.p.Threads = append(b.p.Threads, export.Thread{Name: name})
	return len(b.p.Threads) - 1
}

// synthetic returns the index of a frame that represents no code.
func (b *builder) synthetic(name string, class export.Class) int32 {
	f := export.Frame{Name: name, ModuleIndex: -1, Class: class}
	if i := slices.Index(b.p.Frames, f); i >= 0 {
		return int32(i)
	}
	b.p.Frames = append(b.p.Frames, f)
	return int32(len(b.p.Frames) - 1)
}

// sum adds a process to the sums of the recording.
func (b *builder) sum(a *account, first int) {
	if b.p.Stats.CPU == nil {
		b.p.Stats.CPU = &export.CPUTime{NotSampled: make([]int64, len(export.Causes))}
	}
	c := b.p.Stats.CPU
	c.Process += int64(a.p.clock.CPUNanos)
	for cause, nanos := range a.missing {
		c.NotSampled[cause] += int64(nanos)
		c.Profile -= int64(nanos)
	}
	for _, nanos := range a.kernel {
		c.Kernel += int64(nanos)
	}
	for i := range b.p.Stacks[first:] {
		c.Profile += b.p.Stacks[first+i].CPUNanos
	}
}

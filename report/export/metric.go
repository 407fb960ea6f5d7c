package export

import "slices"

// metric is a value of a stack, as pprof and the page name it.
type metric struct {
	name, label string
	unit        string // pprof's: count, nanoseconds, bytes
	count       int    // the metric that says how many there are
}

var metrics = [numValues]metric{
	valueSamples:    {metricSamples, "Samples", "count", valueSamples},
	valueWall:       {metricWall, "Wall time", "nanoseconds", valueSamples},
	valueCPU:        {metricCPU, "CPU time", "nanoseconds", valueCPUSamples},
	valueCPUSamples: {"cpu_samples", "CPU samples", "count", valueCPUSamples},
	valueWaits:      {"waits", "Waits", "count", valueWaits},
	valueWait:       {"wait", "Wait time", "nanoseconds", valueWaits},
	valueLocks:      {"locks", "Locks", "count", valueLocks},
	valueLock:       {"lock", "Lock time", "nanoseconds", valueLocks},
	valueAllocs:     {"allocations", "Allocations", "count", valueAllocs},
	valueAlloc:      {"alloc_space", "Allocated bytes", "bytes", valueAllocs},
	valueExceptions: {"exceptions", "Exceptions", "count", valueExceptions},
	valuePauses:     {"gc_pauses", "GC pauses", "count", valuePauses},
	valuePause:      {"gc_pause", "GC pause time", "nanoseconds", valuePauses},
	valueJITs:       {"jit_methods", "Compiled methods", "count", valueJITs},
	valueJIT:        {"jit_time", "JIT time", "nanoseconds", valueJITs},
	valueQueued:     {"queued", "Queued work items", "count", valueQueued},
	valueQueue:      {"queue", "Queue time", "nanoseconds", valueQueued},
	valueStarved:    {"starvations", "Thread pool starvations", "count", valueStarved},
	valueOthers:     {"events", "Events", "count", valueOthers},
}

// eventValues are the metrics of an event: how many, how much.
var eventValues = [NumEvents][]int{NoEvent: {valueSamples, valueWall, valueCPU, valueCPUSamples},
	EventWait: {valueWaits, valueWait}, EventLock: {valueLocks, valueLock},
	EventAllocation: {valueAllocs, valueAlloc}, EventException: {valueExceptions},
	EventPause: {valuePauses, valuePause}, EventJIT: {valueJITs, valueJIT},
	EventQueue: {valueQueued, valueQueue}, EventStarved: {valueStarved}, EventOther: {valueOthers}}

// shown returns the metrics of a profile: those of samples and of the requested events.
func (p *Profile) shown() []int {
	out := append([]int(nil), eventValues[NoEvent]...)
	for i := range p.Stats.Events {
		out = append(out, eventValues[p.Stats.Events[i].Event%NumEvents]...)
	}
	return out
}

// valuesOf returns the values of a stack, by metric.
func valuesOf(s *Stack) (v values) {
	if s.Event == NoEvent || s.Event >= NumEvents {
		return values{s.Count, s.WallNanos, s.CPUNanos, s.cpuCount()}
	}
	for i, at := range eventValues[s.Event] {
		v[at] = [...]int64{s.Count, s.Sum}[i]
	}
	return v
}

// cpuCount returns the number of samples behind the stack's CPU time.
func (s *Stack) cpuCount() int64 {
	if s.CPUCount == 0 && s.CPUNanos > 0 {
		return s.Count
	}
	return s.CPUCount
}

// lineMetric returns the metric for formats with one value per stack: the one that the user chose,
// else samples, or the amount of the first event if there are events and no samples.
func (p *Profile) lineMetric() int {
	if m := p.firstMetric(); m >= 0 {
		return m
	}
	if len(p.Stats.Events) == 0 ||
		slices.ContainsFunc(p.Stacks, func(s Stack) bool { return s.Event == NoEvent }) {
		return valueSamples
	}
	of := eventValues[p.Stats.Events[0].Event%NumEvents]
	return of[len(of)-1]
}

// sampled returns the profile without its events.
func (p *Profile) sampled() *Profile {
	if len(p.Stats.Events) == 0 {
		return p
	}
	q := *p
	q.Stacks = slices.DeleteFunc(slices.Clone(p.Stacks), func(s Stack) bool { return s.Event != NoEvent })
	return &q
}

// waiting returns a profile of the samples without CPU time. It returns nil if a tree of CPU
// time omits none of them.
func (p *Profile) waiting() *Profile {
	if p.defaultMetric() != valueCPU {
		return nil
	}
	q := *p
	q.Stacks = nil
	for _, s := range p.Stacks {
		s.WallNanos, s.Count = s.WallNanos-s.CPUNanos, s.Count-s.cpuCount()
		s.CPUNanos, s.CPUCount = 0, 0
		if s.Count > 0 && s.WallNanos > 0 {
			q.Stacks = append(q.Stacks, s)
		}
	}
	if q.Stacks == nil {
		return nil
	}
	return &q
}

// Metrics of a sample, as pprof and the page name them.
const (
	metricSamples = "samples"
	metricWall    = "wall"
	metricCPU     = "cpu"
)

// MetricNames returns the names that Profile.First may have for this profile.
func (p *Profile) MetricNames() (names []string) {
	for _, at := range p.shown() {
		names = append(names, metrics[at].name)
	}
	return names
}

// Unit returns the unit of the metric that is shown first: nanoseconds, bytes, or count.
func Unit(p *Profile) string { return metrics[p.defaultMetric()].unit }

// Metric returns the name of the metric that is shown first.
func Metric(p *Profile) string { return metrics[p.defaultMetric()].name }

// firstMetric returns the metric that the user chose, -1 if none.
func (p *Profile) firstMetric() int {
	if p.First == "" {
		return -1
	}
	return slices.IndexFunc(metrics[:], func(m metric) bool { return m.name == p.First })
}

// defaultMetric returns the metric that people should see first: CPU time, or samples if CPU
// time was not measured. Most threads of a server sleep, so a view of all samples shows
// waiting threads and hides working ones. If all samples are of waiting threads, the default
// is samples.
func (p *Profile) defaultMetric() int {
	if m := p.firstMetric(); m >= 0 {
		return m
	}
	samples, cpu := false, false
	for i := range p.Stacks {
		s := &p.Stacks[i]
		if s.CPUNanos > 0 && s.Count > 0 {
			return valueCPU
		}
		samples, cpu = samples || s.Count > 0, cpu || s.CPUNanos > 0
	}
	if cpu && !samples {
		return valueCPU
	}
	return p.lineMetric()
}

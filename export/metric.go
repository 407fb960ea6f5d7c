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
	valueCPU:        {metricCPU, "CPU time", "nanoseconds", valueSamples},
	valueWaits:      {"waits", "Waits", "count", valueWaits},
	valueWait:       {"wait", "Wait time", "nanoseconds", valueWaits},
	valueLocks:      {"locks", "Locks", "count", valueLocks},
	valueLock:       {"lock", "Lock time", "nanoseconds", valueLocks},
	valueAllocs:     {"allocations", "Allocations", "count", valueAllocs},
	valueAlloc:      {"alloc_space", "Allocated bytes", "bytes", valueAllocs},
	valueExceptions: {"exceptions", "Exceptions", "count", valueExceptions},
}

// eventValues are the metrics of an event: how many, how much.
var eventValues = [NumEvents][]int{NoEvent: {valueSamples, valueWall, valueCPU}, EventWait: {valueWaits, valueWait}, EventLock: {valueLocks, valueLock},
	EventAllocation: {valueAllocs, valueAlloc}, EventException: {valueExceptions}}

// shown are the metrics of a profile: those of samples, and of the events that were
// asked for.
func (p *Profile) shown() []int {
	out := append([]int(nil), eventValues[NoEvent]...)
	for i := range p.Stats.Events {
		out = append(out, eventValues[p.Stats.Events[i].Event%NumEvents]...)
	}
	return out
}

// valuesOf are a stack's.
func valuesOf(s *Stack) (v values) {
	if s.Event == NoEvent || s.Event >= NumEvents {
		return values{s.Count, s.WallNanos, s.CPUNanos}
	}
	for i, at := range eventValues[s.Event] {
		v[at] = [...]int64{s.Count, s.Sum}[i]
	}
	return v
}

// lineMetric is the one of formats that have room for one: samples, or if there are
// none by what was asked for, how much of the first event.
func (p *Profile) lineMetric() int {
	if len(p.Stats.Events) == 0 || slices.ContainsFunc(p.Stacks, func(s Stack) bool { return s.Event == NoEvent }) {
		return valueSamples
	}
	of := eventValues[p.Stats.Events[0].Event%NumEvents]
	return of[len(of)-1]
}

// sampled is a profile without its events.
func (p *Profile) sampled() *Profile {
	if len(p.Stats.Events) == 0 {
		return p
	}
	q := *p
	q.Stacks = slices.DeleteFunc(slices.Clone(p.Stacks), func(s Stack) bool { return s.Event != NoEvent })
	return &q
}

// Metrics of a sample, as pprof and the page name them.
const (
	metricSamples = "samples"
	metricWall    = "wall"
	metricCPU     = "cpu"
)

// defaultMetric is what people should see first: where CPU time went, and samples only
// where it was not measured. Most threads of a server sleep, so that the samples of all
// of them show what waits and hide what works.
func (p *Profile) defaultMetric() string {
	for i := range p.Stacks {
		if p.Stacks[i].CPUNanos > 0 {
			return metricCPU
		}
	}
	return metrics[p.lineMetric()].name
}

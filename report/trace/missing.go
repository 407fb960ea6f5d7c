package trace

import (
	"slices"

	"github.com/seedwalk/seedwalk/report/export"
)

type metric struct {
	names     []string
	what, how string
}

// metrics lists the metrics of each kind of event (see export.Profile.MetricNames), and what
// records such events.
var metrics = [export.NumEvents]metric{
	export.NoEvent: {[]string{"cpu", "wall", "samples", "cpu_samples"}, "samples",
		"the provider Microsoft-DotNETCore-SampleProfiler; record with: dotnet-trace collect --providers Microsoft-DotNETCore-SampleProfiler, or seedwalk record --pid PID"},
	export.EventWait: {[]string{"waits", "wait"}, "waits",
		"the keyword WaitHandle (0x40000000000) at level 5, .NET 9 and later; record with: seedwalk waits --pid PID --keep FILE"},
	export.EventLock: {[]string{"locks", "lock"}, "locks",
		"the keyword Contention (0x4000); record with: seedwalk waits --pid PID --keep FILE"},
	export.EventAllocation: {[]string{"allocations", "alloc_space"}, "allocations",
		"the keyword GC (0x1) at level 5; record with: dotnet-trace collect --profile gc-verbose"},
	export.EventException: {[]string{"exceptions"}, "exceptions",
		"the keyword Exception (0x8000); record with: dotnet-trace collect --clrevents exception"},
	export.EventPause: {[]string{"gc_pauses", "gc_pause"}, "GC pauses",
		"the keyword GC (0x1); record with: dotnet-trace collect --profile gc-collect"},
	export.EventJIT: {[]string{"jit_methods", "jit_time"}, "compiled methods",
		"the keyword JIT (0x10) at level 5; record with: dotnet-trace collect --clrevents jit --clreventlevel verbose"},
	export.EventQueue: {[]string{"queued", "queue"}, "queued work items",
		"the provider System.Diagnostics.Eventing.FrameworkEventSource with keyword ThreadPool (0x2) at level 5; record with: dotnet-trace collect --providers System.Diagnostics.Eventing.FrameworkEventSource:0x2:5"},
	export.EventStarved: {[]string{"starvations"}, "starvations of the thread pool",
		"the keyword Threading (0x10000); record with: dotnet-trace collect --clrevents threading"},
	export.EventOther: {[]string{"events"}, "other events",
		"a provider of such events; record with: dotnet-trace collect --providers NAME"},
}

// Missing says in one line why the traces do not show a metric, "" if they show it or if there
// is no such metric.
func (t *Trace) Missing(name string) string {
	kind := slices.IndexFunc(metrics[:], func(m metric) bool { return slices.Contains(m.names, name) })
	if sampled := slices.ContainsFunc(t.files,
		func(f *file) bool { return f.has(export.NoEvent) }); sampled && !t.hasModes() &&
		(name == "cpu" || name == "cpu_samples") {
		return "no CPU time in this trace: it does not say which threads ran; use --metric wall, or record with: seedwalk record --pid PID"
	}
	if kind < 0 || slices.ContainsFunc(t.files, func(f *file) bool { return f.has(export.Event(kind)) }) {
		return ""
	}
	return "no " + metrics[kind].what + " in this trace: there were none, or it was recorded without " +
		metrics[kind].how
}

// has reports whether a trace has events of a kind.
func (f *file) has(kind export.Event) bool {
	return f.events[kind].Seen > 0 || kind == export.NoEvent && f.sampler.pass > 0
}

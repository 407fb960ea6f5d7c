package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/report/export"
)

// maxPeriod bounds the time that one sample represents, in nanoseconds.
const maxPeriod = int64(1e9)

// sampler is the state of the runtime's sampler.
type sampler struct {
	pass   int64  // number of passes so far
	start  uint64 // timestamp of the current pass
	period int64  // nanoseconds between the current pass and the previous one

	samples, inManaged int64
}

// sample adds a sample of a thread. A pass ends when a thread is sampled again.
func (f *file) sample(e *nettrace.Event) bool {
	s, th := &f.sampler, f.thread(e.Thread)
	if th.pass == s.pass {
		if s.pass > 0 && e.Timestamp > s.start {
			s.period = min(f.Trace.Nanos(e.Timestamp-s.start), maxPeriod)
		}
		s.start = e.Timestamp
		s.pass++
	}
	th.pass = s.pass
	inManaged, ok := clrevent.DecodeSample(e.Payload)
	stack := f.StackOf(e)
	i := f.at(foldKey{thread: e.Thread, stack: stack}, e.Timestamp)
	sum := &f.sums[i]
	s.samples++
	sum.count++
	sum.wall += s.period
	if inManaged {
		s.inManaged++
		sum.cpu += s.period
		sum.cpus++
	}
	if len(f.samples) >= maxSamples {
		f.untimed++
	} else {
		f.samples = append(f.samples,
			export.Sample{Stack: i, At: f.Trace.Time(e.Timestamp).UnixNano(), Wall: s.period, CPU: inManaged})
	}
	return ok
}

func (f *file) allocation(kind clrevent.Kind, e *nettrace.Event) bool {
	var a clrevent.Allocation
	var ok bool
	if kind == clrevent.AllocationTick {
		a, ok = clrevent.DecodeTick(e.Payload, e.Meta.Version, f.Trace.PointerSize)
	} else {
		a, ok = clrevent.DecodeSampled(e.Payload, f.Trace.PointerSize)
	}
	if ok {
		f.add(foldKey{event: export.EventAllocation, thread: e.Thread, stack: f.StackOf(e),
			typ: f.t.text(a.Name, otherTypes)}, e.Timestamp, int64(min(a.Weight, 1<<50)))
	}
	return ok
}

// pause is a suspension of all threads for a collection. The thread that suspends the others reports it.
type pause struct {
	open       bool
	key        foldKey
	start, end uint64
	gen        string
}

// maxPauses bounds the pauses that are kept until the end of the trace.
const maxPauses = 1 << 20

// collection collects the pauses of garbage collections. The sampler suspends the threads too, but only
// suspensions for a collection count. A trace does not order events of different threads by time, so each
// thread has its own pause in progress.
func (f *file) collection(kind clrevent.Kind, e *nettrace.Event) bool {
	p := &f.thread(e.Thread).pause
	switch kind {
	case clrevent.SuspendStart:
		forGC, ok := clrevent.DecodeSuspend(e.Payload)
		*p = pause{open: forGC && ok,
			key:   foldKey{event: export.EventPause, thread: e.Thread, stack: f.StackOf(e)},
			start: e.Timestamp, gen: "background GC"}
		return ok
	case clrevent.CollectionStart:
		c, ok := clrevent.DecodeCollection(e.Payload)
		p.gen = describe(&c)
		return ok
	case clrevent.RestartEnd:
		if p.open && e.Timestamp >= p.start && len(f.pauses) < maxPauses {
			p.end = e.Timestamp
			f.pauses = append(f.pauses, *p)
		}
		p.open = false
	}
	return true
}

// addPauses adds the collected pauses. A thread that suspends the others while they are suspended already has
// to wait. So its pause begins when the earlier one ends.
func (f *file) addPauses() {
	slices.SortFunc(f.pauses, func(a, b pause) int { return cmp.Compare(a.end, b.end) })
	var last uint64
	for i := range f.pauses {
		p := &f.pauses[i]
		p.key.typ = f.t.text(p.gen, otherTypes)
		f.timed(p.key, max(p.start, min(last, p.end)), p.end)
		last = p.end
	}
}

var reasons = [...]string{"allocation", "GC.Collect", "low memory", "", "allocation of large objects",
	"no space for small objects", "no space for large objects", "GC.Collect"}

// describe names a collection by its generation and reason.
func describe(c *clrevent.Collection) string {
	name := fmt.Sprintf("gen %d GC", min(c.Generation, 9))
	if c.Type == 1 {
		name = "background " + name
	}
	if c.Reason < uint32(len(reasons)) && reasons[c.Reason] != "" {
		name += ": " + reasons[c.Reason]
	}
	return name
}

// jit is a compilation in progress.
type jit struct {
	method, start uint64
	key           foldKey
}

// maxJITs bounds the compilations in progress on one thread: one may start another.
const maxJITs = 64

// jitted is the flag of a method whose code is not precompiled.
const jitted = 8

// compiled adds the compilations of methods.
func (f *file) compiled(kind clrevent.Kind, e *nettrace.Event) bool {
	k := foldKey{event: export.EventJIT, thread: e.Thread, stack: f.StackOf(e)}
	th := f.thread(e.Thread)
	if kind == clrevent.JITStart {
		m, ok := clrevent.DecodeJITStart(e.Payload)
		if ok && len(th.jits) < maxJITs {
			th.jits = append(th.jits, jit{m.ID, e.Timestamp, k})
		}
		return ok
	}
	m, ok := clrevent.DecodeMethod(e.Payload)
	if !ok || m.Flags&jitted == 0 || e.Meta.Provider != clrevent.Runtime {
		return true // damage is counted where the names are read
	}
	when := e.Timestamp
	for i := len(th.jits) - 1; i >= 0; i-- {
		if j := th.jits[i]; j.method == m.ID && j.start <= e.Timestamp {
			when, k = j.start, j.key
			th.jits = th.jits[:i]
			break
		}
	}
	k.typ = f.t.text(demangle.EventName(m.FullName()), "(other methods)")
	f.timed(k, when, e.Timestamp)
	return true
}

// others adds an event of any other kind. Events of the runtime count only if they have a stack.
func (f *file) others(e *nettrace.Event) {
	m := e.Meta
	if m.ID == 0 || m.Provider == clrevent.Rundown || m.Provider == clrevent.EventPipe ||
		m.Provider == clrevent.Runtime && e.Stack.Len() == 0 {
		return
	}
	typ, ok := f.other[m]
	if !ok {
		name := m.Name
		if name == "" {
			name = fmt.Sprintf("event %d", m.EventID)
		}
		typ = f.t.text(strings.TrimSuffix(m.Provider+"/"+name, "/"), otherEvents)
		f.other[m] = typ
	}
	f.add(foldKey{event: export.EventOther, thread: e.Thread, stack: f.StackOf(e), typ: typ}, e.Timestamp, 0)
}

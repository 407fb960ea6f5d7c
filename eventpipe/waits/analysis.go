package waits

import (
	"fmt"
	"io"
	"slices"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// Limits of an Analysis.
const (
	DefaultList = 1 << 18 // individually listed waits
	maxStacks   = 1 << 20
	maxStackSum = 256 << 20 // bytes
	maxThreads  = 1 << 20
	maxGroups   = 1 << 20
)

// Analysis collects the waits of a trace. Create it with New, call Read with a trace, and
// then call Finish. The trace comes from a file or from a running process. One goroutine
// calls it, and Read calls the functions OnWait, OnBegin, and OnEvent.
type Analysis struct {
	Trace  nettrace.Trace
	Counts nettrace.Counts
	Faults []nettrace.Fault // damage inside the trace
	Ended  error            // why reading stopped before the end of the trace, nil if it did not
	Names  *Names

	Waits    []Wait  // listed; by start after Finish
	Unlisted int64   // shortest waits, in the sums only: the list was full
	Groups   []Group // after Finish, most time first, like Sites and Threads
	Sites    []Site
	Threads  []Thread
	First    uint64 // timestamp of the session's start
	Last     uint64 // timestamp of the last event
	watched  uint64 // last event before the list at the session's end, which reports no waits
	Unreliable,
	Orphans, // stops without a start
	Backwards, // times a thread's clock goes back, or a wait ends before it began
	BadPayloads int64

	// OnWait, if not nil, is called for every wait when it ends.
	OnWait func(*Wait)
	// OnBegin, if not nil, is called for every wait when it begins, with the fields
	// known at that time.
	OnBegin func(*Wait)
	// OnEvent, if not nil, is called for every event.
	OnEvent func(clrevent.Kind, *nettrace.Event)

	// Requested means that the trace was recorded with all kinds of waits enabled.
	Requested bool

	visible               visible
	Filter                Filter
	List                  int // maximum length of the list of waits; 0 = DefaultList
	threads               map[threadKey]*thread
	stacks                map[string]StackID
	raw                   []string // by StackID
	nativeIDs             map[string]int32
	natives               []Native // by Wait.Native
	rawSum                int
	lostAt, badAt, backAt int64 // first offset: after lost events, malformed, out of order; 0 = none
	groups                map[GroupKey]*Group
	recent                [1 << 14]*Group // of groups, by stack and thread
	recentStacks          [256]StackID    // by bytes of the stack
	latest                *thread
	shortest              Wait // the last listed one of the latest prune
	pruned                bool
	ended                 bool
}

type event = nettrace.Event

// New returns an empty Analysis.
func New() *Analysis {
	return &Analysis{Names: NewNames(), threads: map[threadKey]*thread{},
		stacks: map[string]StackID{}, raw: []string{""},
		groups: map[GroupKey]*Group{}, nativeIDs: map[string]int32{}}
}

// Read reads a trace to its end or to the first damage. After an error, the Analysis contains
// everything before the damage. The error is also in Ended.
func (a *Analysis) Read(in io.Reader) error {
	r := nettrace.NewReader(in)
	for {
		kind, err := r.Next()
		if err == io.EOF {
			err = nil
		} else if err == nil {
			a.item(r, kind)
			continue
		}
		if t := r.Trace(); t != nil {
			a.start(t)
		}
		a.Counts, a.Faults, a.Ended = r.Counts(), r.Faults(), err
		return err
	}
}

// ReadNames reads only the names of methods, from the trace of a session that lists methods.
func (a *Analysis) ReadNames(in io.Reader) error {
	r := nettrace.NewReader(in)
	for {
		kind, err := r.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if kind == nettrace.EventKind {
			a.Names.event(kindOf(r.Event().Meta), r.Event())
		}
	}
}

func (a *Analysis) start(t *nettrace.Trace) {
	if a.Trace.Frequency == 0 {
		a.Trace, a.First, a.Last, a.watched = *t, t.Ticks, t.Ticks, t.Ticks
	}
}

func (a *Analysis) item(r *nettrace.Reader, kind nettrace.Kind) {
	a.start(r.Trace())
	if kind == nettrace.PointKind {
		a.point(r.Point())
		return
	}
	a.event(r.Event())
}

// kindOf returns the kind of the events with a description, and caches it there.
func kindOf(m *nettrace.Metadata) clrevent.Kind {
	k, ok := m.User.(clrevent.Kind)
	if !ok && m.ID != 0 {
		k = clrevent.KindOf(m.Provider, m.EventID, m.Version)
		m.User = k
	}
	return k
}

func (a *Analysis) event(e *event) {
	a.First, a.Last = min(a.First, e.Timestamp), max(a.Last, e.Timestamp)
	if e.Meta.Provider != clrevent.Rundown {
		a.watched = max(a.watched, e.Timestamp)
	}
	t := a.thread(threadKey{e.Process, e.CaptureThread})
	if e.Timestamp < t.last && !e.Restart {
		a.Backwards++ // a thread's events are in order, or damaged
		note(&a.backAt, e.Offset)
		a.lose(t)
	}
	if e.Lost > 0 {
		note(&a.lostAt, e.Offset)
	}
	if e.Lost > 0 || e.Restart {
		a.lose(t)
	}
	kind := kindOf(e.Meta)
	a.visible.count(kind)
	if a.OnEvent != nil {
		a.OnEvent(kind, e)
	}
	switch {
	case kind == clrevent.ContentionStart, kind == clrevent.ContentionStop,
		kind == clrevent.WaitStart, kind == clrevent.WaitStop:
		if !a.pair(t, kind, e) {
			a.BadPayloads++
			note(&a.badAt, e.Offset)
		}
	case kind != clrevent.None && !a.Names.event(kind, e):
		a.BadPayloads++
		note(&a.badAt, e.Offset)
	}
	t.seen, t.last = true, e.Timestamp
}

// note records the first offset.
func note(first *int64, at int64) {
	if *first == 0 {
		*first = at
	}
}

// point handles a sequence point: the open waits of threads that lost events become unreliable.
func (a *Analysis) point(p *nettrace.Point) {
	if len(p.Lost) > 0 {
		note(&a.lostAt, p.Offset)
	}
	for _, l := range p.Lost {
		if t := a.threads[threadKey{l.Process, l.Thread}]; t != nil {
			a.lose(t)
		}
	}
}

func (a *Analysis) thread(k threadKey) *thread {
	if a.latest != nil && a.latest.key == k {
		return a.latest
	}
	t := a.threads[k]
	if t == nil {
		if len(a.threads) >= maxThreads {
			clear(a.threads)
		}
		t = &thread{key: k}
		a.threads[k] = t
	}
	a.latest = t
	return t
}

// StackOf returns the ID of an event's stack. Equal stacks share an ID. It returns LostStack if the
// trace lacks the stack, or if there are too many stacks.
func (a *Analysis) StackOf(e *nettrace.Event) StackID {
	if e.StackLost {
		return LostStack
	}
	raw := e.Stack.Raw()
	if len(raw) == 0 {
		return NoStack
	}
	recent := &a.recentStacks[raw[0]^raw[len(raw)-1]]
	if *recent > NoStack && a.raw[*recent] == string(raw) {
		return *recent
	}
	if id, ok := a.stacks[string(raw)]; ok {
		*recent = id
		return id
	}
	if len(a.raw) >= maxStacks || a.rawSum+len(raw) > maxStackSum {
		return LostStack
	}
	id := StackID(len(a.raw))
	s := string(raw)
	a.raw, a.rawSum = append(a.raw, s), a.rawSum+len(s)
	a.stacks[s] = id
	return id
}

// Stack returns a stack's addresses, leaf first.
func (a *Analysis) Stack(id StackID) []uint64 {
	if id <= 0 || int(id) >= len(a.raw) {
		return nil
	}
	return nettrace.StackOf([]byte(a.raw[id]), a.Trace.PointerSize).Append(nil)
}

// Depth returns the number of a stack's addresses.
func (a *Analysis) Depth(id StackID) int {
	if id <= 0 || int(id) >= len(a.raw) {
		return 0
	}
	return len(a.raw[id]) / a.Trace.PointerSize
}

// Finish closes open waits and computes the sums.
func (a *Analysis) Finish() {
	if a.ended {
		return
	}
	a.ended = true
	for _, t := range a.threads {
		for _, o := range t.open {
			a.finish(o, max(a.watched, o.Start), StillOpen)
		}
		t.open = nil
	}
	a.prune(a.list())
	slices.SortFunc(a.Waits, func(x, y Wait) int { return order(&x, &y) })
	a.sumUp()
}

// Partial returns the reasons why the analysis is incomplete, one line each.
func (a *Analysis) Partial() (out []string) {
	if a.Ended != nil {
		line := a.Ended.Error()
		if a.Trace.Frequency != 0 {
			line += "; what was read before is shown"
		}
		out = append(out, line)
	}
	for i := range a.Faults {
		f := &a.Faults[i]
		line := f.Error.Error()
		if f.Count > 1 {
			line += fmt.Sprintf(" (and %d more)", f.Count-1)
		}
		out = append(out, line)
	}
	if a.Counts.Lost > 0 {
		out = append(out, a.lossLine())
	}
	if a.BadPayloads > 0 {
		out = append(out, fmt.Sprintf("%d events of the runtime are malformed, the first at offset %d", a.BadPayloads, a.badAt))
	}
	if a.Backwards > 0 {
		out = append(out, fmt.Sprintf("%d times a thread's clock goes back, first at offset %d",
			a.Backwards, a.backAt))
	}
	return out
}

// lossLine describes lost events. In a damaged trace their number can be a damaged value.
func (a *Analysis) lossLine() string {
	if len(a.Faults) > 0 {
		return fmt.Sprintf("events were lost or damaged, first seen at offset %d: %d waits are unreliable, others are missing", a.lostAt, a.Unreliable)
	}
	return fmt.Sprintf("%d events were lost, first seen at offset %d: %d waits are unreliable, others are missing; a larger --buffer helps", a.Counts.Lost, a.lostAt, a.Unreliable)
}

// PartialLine returns the first reason of Partial, the number of the others, and what was kept,
// in one line. It is "" if the analysis is complete.
func (a *Analysis) PartialLine() string {
	all := a.Partial()
	if len(all) == 0 {
		return ""
	}
	line := all[0]
	if more := len(all) - 1; more > 0 {
		line += fmt.Sprintf("; %d more in the report", more)
	}
	if a.Trace.Frequency != 0 {
		line += fmt.Sprintf("; kept: %d events, %d waits", a.Counts.Events, int64(len(a.Waits))+a.Unlisted)
	}
	return line
}

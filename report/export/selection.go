package export

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Selection is a part of a profile. The zero value is all of it.
type Selection struct {
	Since, Until time.Duration  // from the start of the recording; Until 0 = to its end
	Thread       string         // ID of a thread, or part of its name in any case, "" = all
	Focus        *regexp.Regexp // stacks with a frame whose name matches, nil = all
}

// NoTimesError means that a profile does not hold the times of its samples.
type NoTimesError struct{}

func (*NoTimesError) Error() string {
	return "the recording does not hold the times of its samples: a part of its time cannot be chosen"
}

// Select returns a profile of the selected stacks. It shares tables with p. A part of the time omits
// CPU time that no sample locates. It fails with a *NoTimesError if a part of the time is selected
// and p lacks the times of its samples.
func (p *Profile) Select(s Selection) (*Profile, error) {
	if s == (Selection{}) {
		return p, nil
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	q := *p
	q.Stats = Stats{Clock: p.Stats.Clock, Notes: p.Stats.Notes, ExitNote: p.Stats.ExitNote, Way: p.Stats.Way,
		WayWhy: p.Stats.WayWhy, Events: p.Stats.Events}
	q.Stacks = append([]Stack(nil), p.Stacks...)
	q.Stats.Untimed, q.Stats.Unlisted = p.Stats.Untimed, p.Stats.Unlisted
	if s.Since != 0 || s.Until != 0 {
		if len(p.Samples) == 0 {
			return nil, &NoTimesError{}
		}
		q.window(p, s.Since, s.Until)
		q.Stats.Notes = append(slices.Clone(p.Stats.Notes), p.untimedNotes()...)
		q.Stats.Events = slices.DeleteFunc(slices.Clone(p.Stats.Events), untimed)
	}
	q.filter(s)
	q.recount()
	q.Stats.Selection = s.String()
	return &q, nil
}

// untimed reports whether events of a kind have no times.
func untimed(e EventStats) bool { return e.Event == EventAllocation || e.Event == EventOther }

// untimedNotes returns a note for each kind of data without times, such as samples beyond the limit of times.
// --since and --until leave such data out.
func (p *Profile) untimedNotes() (notes []string) {
	add := func(n int64, what string) {
		if n > 0 {
			notes = append(notes, "not in this part of the time: "+plural(n, what)+" whose times are unknown")
		}
	}
	add(p.Stats.Untimed, "sample")
	add(p.Stats.Unlisted, "shorter wait")
	for _, e := range p.Stats.Events {
		if untimed(e) {
			add(e.Count, e.Event.String())
		}
	}
	return notes
}

// String describes the selection.
func (s Selection) String() string {
	var parts []string
	switch {
	case s.Until != 0:
		parts = append(parts, fmt.Sprintf("%v to %v", s.Since, s.Until))
	case s.Since != 0:
		parts = append(parts, fmt.Sprintf("from %v", s.Since))
	}
	if s.Thread != "" {
		parts = append(parts, "thread "+s.Thread)
	}
	if s.Focus != nil {
		parts = append(parts, fmt.Sprintf("stacks with %q", s.Focus))
	}
	return strings.Join(parts, ", ")
}

// window reduces q, a copy of p, to the samples and waits of a part of the time.
func (q *Profile) window(p *Profile, since, until time.Duration) {
	begin, end := p.Start.Add(since).UnixNano(), int64(1<<63-1)
	if until != 0 {
		end = p.Start.Add(until).UnixNano()
	}
	q.Samples = nil
	cpu := make([]int64, len(p.Stacks))
	for i := range q.Stacks {
		s := &q.Stacks[i]
		if s.Event == NoEvent {
			s.Count, s.WallNanos, s.CPUNanos, s.CPUCount = 0, 0, 0, 0
		} else {
			s.Count, s.Sum, s.Longest = 0, 0, 0
		}
	}
	for _, sample := range p.Samples {
		from := max(sample.At-sample.Wall, begin)
		if sample.CPU {
			from = sample.At
		}
		if to := min(sample.At, end); sample.At >= begin && from <= end {
			s := &q.Stacks[sample.Stack]
			s.Count++
			sample.At, sample.Wall = to, max(0, to-max(sample.At-sample.Wall, begin))
			s.WallNanos += sample.Wall
			if sample.CPU {
				cpu[sample.Stack]++
			}
			q.Samples = append(q.Samples, sample)
		}
	}
	for i, n := range cpu {
		if whole := p.Stacks[i].cpuCount(); n > 0 && whole > 0 {
			q.Stacks[i].CPUCount = n
			q.Stacks[i].CPUNanos = int64(float64(p.Stacks[i].CPUNanos) * float64(n) / float64(whole))
		}
	}
	q.windowWaits(p, begin, end)
	q.Start = p.Start.Add(since)
	q.Duration = max(0, p.Duration-since)
	if until != 0 {
		q.Duration = min(q.Duration, until-since)
	}
}

// windowWaits keeps the listed waits that overlap the time, and sums up their whole lengths.
func (q *Profile) windowWaits(p *Profile, begin, end int64) {
	q.Waits = nil
	for _, w := range p.Waits {
		if at := w.Start.UnixNano(); at <= end && at+w.Nanos >= begin {
			q.Waits = append(q.Waits, w)
			s := &q.Stacks[w.Stack]
			s.Count++
			s.Sum += w.Nanos
			s.Longest = max(s.Longest, w.Nanos)
		}
	}
}

// filter drops the stacks that are not selected or have nothing left.
func (q *Profile) filter(s Selection) {
	place := make([]int32, len(q.Stacks))
	kept := q.Stacks[:0:0]
	for i := range q.Stacks {
		st := &q.Stacks[i]
		place[i] = -1
		if st.Count == 0 && st.WallNanos == 0 && st.CPUNanos == 0 || !q.threadMatches(st, s.Thread) ||
			!q.focused(st, s.Focus) {
			continue
		}
		place[i] = int32(len(kept))
		kept = append(kept, *st)
	}
	q.Stacks = kept
	q.dropThreads()
	samples, waits := q.Samples, q.Waits
	q.Samples, q.Waits = nil, nil
	for _, sample := range samples {
		if sample.Stack = place[sample.Stack]; sample.Stack >= 0 {
			q.Samples = append(q.Samples, sample)
		}
	}
	for _, w := range waits {
		if at := place[w.Stack]; at >= 0 {
			w.Stack = int(at)
			q.Waits = append(q.Waits, w)
		}
	}
}

// dropThreads drops the threads without stacks.
func (q *Profile) dropThreads() {
	place := make([]int, len(q.Threads))
	var kept []Thread
	for i := range q.Stacks {
		t := &q.Stacks[i].Thread
		if place[*t] == 0 {
			kept = append(kept, q.Threads[*t])
			place[*t] = len(kept)
		}
		*t = place[*t] - 1
	}
	q.Threads = kept
}

func (q *Profile) threadMatches(s *Stack, thread string) bool {
	if thread == "" {
		return true
	}
	t := &q.Threads[s.Thread]
	if id, err := strconv.Atoi(thread); err == nil {
		return t.ID == id
	}
	return strings.Contains(strings.ToLower(t.Name), strings.ToLower(thread))
}

func (q *Profile) focused(s *Stack, focus *regexp.Regexp) bool {
	if focus == nil {
		return true
	}
	for _, f := range s.Frames {
		if focus.MatchString(q.Frames[f].Name) {
			return true
		}
	}
	return false
}

// recount sums up the samples and events that are left.
func (q *Profile) recount() {
	st := &q.Stats
	st.Samples, st.Complete, st.Gaps = 0, 0, map[string]int64{}
	events := make([]EventStats, len(st.Events))
	for i := range events {
		events[i].Event = st.Events[i].Event
	}
	for i := range q.Stacks {
		s := &q.Stacks[i]
		if s.Event != NoEvent {
			for k := range events {
				if events[k].Event == s.Event {
					events[k].add(s)
				}
			}
			continue
		}
		st.Samples += s.Count
		if s.Complete {
			st.Complete += s.Count
		} else {
			st.Gaps[s.Gap] += s.Count
		}
	}
	st.Events = events
}

func (e *EventStats) add(s *Stack) {
	e.Seen, e.Count, e.Sum, e.Longest = e.Seen+s.Count, e.Count+s.Count,
		e.Sum+s.Sum, max(e.Longest, s.Longest)
	if s.Complete {
		e.Complete += s.Count
	}
	if s.Open {
		e.Open += s.Count
	}
}

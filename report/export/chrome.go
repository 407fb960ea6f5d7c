package export

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/export/timeline"
	"github.com/seedwalk/seedwalk/report/export/traceevent"
)

// chromeArgs are what a slice of samples rests on.
type chromeArgs struct {
	Samples int64   `json:"samples"`
	CPU     float64 `json:"cpu_ms"`
}

// chromeWait are the details of a wait.
type chromeWait struct {
	Millis float64  `json:"ms"` // its whole length, also if its slice is cut to nest
	Type   string   `json:"type,omitempty"`
	Owner  int      `json:"owner_tid,omitempty"` // thread that held the lock
	Stack  []string `json:"stack,omitempty"`     // leaf first
}

// maxChromeFrames bounds the frames of a wait's stack.
const maxChromeFrames = 64

// WriteChrome writes Chrome's Trace Event Format: for each thread when it ran and where it waited,
// as its samples saw it, with the recorded waits, locks, and compilations around that. GC pauses and
// the other lanes have tracks of their own.
func WriteChrome(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	t := &traceevent.Trace{PID: max(1, p.PID), Name: pageTitle(p), Other: chromeNotes(p),
		Tracks: make([]traceevent.Track, len(p.Threads))}
	used, next := map[int]bool{0: true}, 0
	for i := range p.Threads {
		next = max(next, p.Threads[i].ID)
	}
	for i := range p.Threads {
		id := p.Threads[i].ID
		if used[id] {
			next++
			id = next
		}
		used[id] = true
		t.Tracks[i] = traceevent.Track{ID: id, Name: threadLabel(&p.Threads[i])}
	}
	addStates(t.Tracks, p)
	whole := []traceevent.Track{{ID: next + 1, Name: laneNames[EventPause]}} // what concerns all threads
	for _, wait := range p.Waits {
		st := &p.Stacks[wait.Stack]
		track := &t.Tracks[st.Thread]
		switch st.Event {
		case EventPause:
			track = &whole[0]
		case EventQueue, EventStarved, EventException:
			continue // they do not nest
		}
		track.Outer = append(track.Outer, p.chromeSlice(wait, st))
	}
	for _, l := range p.lanes() {
		if l.event == EventPause || l.event == EventLock || l.event == EventJIT {
			continue // slices of their own
		}
		track := traceevent.Track{ID: next + 1 + len(whole), Name: laneNames[l.event]}
		for _, s := range l.spans {
			track.Outer = append(track.Outer,
				traceevent.Slice{Name: track.Name, Category: "lane", Start: 1000 * s.from,
					End: 1000 * max(s.to, s.from+1)})
		}
		whole = append(whole, track)
	}
	if len(whole[0].Outer) == 0 {
		whole = whole[1:]
	}
	t.Tracks = append(whole, t.Tracks...)
	return t.Write(w)
}

func chromeNotes(p *Profile) map[string]string {
	notes := map[string]string{"tool": "seedwalk", "runtime": clean(p.Runtime)}
	if !p.Start.IsZero() {
		notes["start"] = p.Start.UTC().Format(time.RFC3339Nano)
	}
	if p.Stats.Unlisted > 0 {
		notes["shorter waits, not in this file"] = fmt.Sprint(p.Stats.Unlisted)
	}
	if p.Stats.Untimed > 0 {
		notes["samples without a time, not in this file"] = fmt.Sprint(p.Stats.Untimed)
	}
	if len(p.Samples) == 0 {
		notes["thread states"] = "none: " + (&NoTimesError{}).Error()
	}
	return notes
}

// addStates adds what each thread did, as its samples saw it. Time that no sample covers is empty.
func addStates(tracks []traceevent.Track, p *Profile) {
	clocked := slices.ContainsFunc(p.Samples, func(s Sample) bool { return s.CPU })
	names := make([]string, len(p.Stacks)) // what a stack without CPU time does
	lines := make([]timeline.Line[*Sample], len(tracks))
	for i := range p.Samples {
		s := &p.Samples[i]
		if st := &p.Stacks[s.Stack]; st.Event == NoEvent {
			to := s.At - p.Start.UnixNano()
			lines[st.Thread].Add(to-max(s.Wall, p.sampleCPU(s)), to, s)
		}
	}
	for i := range lines {
		var last *traceevent.Slice
		for _, span := range lines[i].Spans() {
			s := span.Value
			if names[s.Stack] == "" {
				names[s.Stack] = map[bool]string{true: "waiting in ", false: "in "}[clocked] +
					p.waitSite(&p.Stacks[s.Stack])
			}
			name := names[s.Stack]
			if s.CPU {
				name = "running"
			}
			if inner := &tracks[i].Inner; last == nil || last.Name != name || span.From > last.End {
				*inner = append(*inner,
					traceevent.Slice{Name: name, Category: "state", Start: span.From, Args: &chromeArgs{}})
				last = &(*inner)[len(*inner)-1]
			}
			if last.End = span.To; span.To == s.At-p.Start.UnixNano() { // the last part of a sample counts it
				args := last.Args.(*chromeArgs)
				args.Samples++
				args.CPU += float64(p.sampleCPU(s)) / 1e6
			}
		}
	}
}

// sampleCPU returns the CPU time that a sample represents, nanoseconds.
func (p *Profile) sampleCPU(s *Sample) int64 {
	st := &p.Stacks[s.Stack]
	if n := st.cpuCount(); s.CPU && n > 0 {
		return st.CPUNanos / n
	}
	return 0
}

// waitSite names the function in which a stack waits: the innermost managed one outside of
// System.Threading and of event sources, or else the innermost managed one, or the leaf.
func (p *Profile) waitSite(s *Stack) string {
	site := ""
	for _, i := range s.Frames {
		f := &p.Frames[i]
		if f.Class != ClassManaged {
			continue
		}
		if !strings.HasPrefix(f.Name, "System.Threading.") &&
			!strings.HasPrefix(f.Name, "System.Diagnostics.Tracing.") {
			return clean(f.Name)
		}
		if site == "" {
			site = clean(f.Name)
		}
	}
	if site == "" && len(s.Frames) > 0 {
		sym := symbolOf(&p.Frames[s.Frames[0]])
		site = sym.label()
	}
	return site
}

// chromeSlice returns the slice of a wait, a lock, a GC pause, or a compilation.
func (p *Profile) chromeSlice(w Wait, s *Stack) traceevent.Slice {
	args, start := chromeWait{Millis: float64(w.Nanos) / 1e6, Type: clean(s.Type), Owner: s.Owner},
		w.Start.Sub(p.Start).Nanoseconds()
	for _, i := range s.Frames[:min(len(s.Frames), maxChromeFrames)] {
		sym := symbolOf(&p.Frames[i])
		args.Stack = append(args.Stack, sym.label())
	}
	name, category := s.Event.String(), s.Event.String()
	switch {
	case s.Event == EventPause && s.Type != "":
		name = clean(s.Type)
	case s.Event != EventPause:
		name += " in " + p.waitSite(s)
	}
	return traceevent.Slice{Name: name, Category: category, Start: start,
		End: start + max(0, w.Nanos), Args: &args}
}

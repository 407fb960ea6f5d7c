package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

type jsonReport struct {
	Format   string      `json:"format"`
	Version  int         `json:"version"`
	Process  jsonProcess `json:"process"`
	Start    *time.Time  `json:"start,omitempty"`
	Duration int64       `json:"duration_ns"`
	Events   struct {
		Read int64 `json:"read"`
		Lost int64 `json:"lost"`
	} `json:"events"`
	Unseen  string   `json:"unseen,omitempty"`
	Partial []string `json:"partial,omitempty"`
	Total   struct {
		Waits int64 `json:"waits"`
		Nanos int64 `json:"ns"`
	} `json:"total"`
	Unreliable int64        `json:"unreliable"`
	Orphans    int64        `json:"unmatched_stops"`
	Unlisted   int64        `json:"unlisted"`
	Waits      []jsonWait   `json:"waits"`
	Sites      []jsonSite   `json:"sites"`
	Threads    []jsonThread `json:"threads"`
}

type jsonProcess struct {
	PID         int    `json:"pid"`
	CommandLine string `json:"command_line,omitempty"`
	Runtime     string `json:"runtime,omitempty"`
	PointerSize int    `json:"pointer_size"`
}

type jsonWait struct {
	Kind     string      `json:"kind"`
	Event    string      `json:"event"`
	State    string      `json:"state"`
	Reliable bool        `json:"reliable"`
	Thread   uint64      `json:"thread"`
	Process  uint64      `json:"process,omitempty"`
	Name     string      `json:"thread_name,omitempty"`
	Start    int64       `json:"start_ns"`
	Stop     int64       `json:"stop_ns"`
	Duration int64       `json:"duration_ns"`
	Depth    uint8       `json:"depth"`
	Idle     bool        `json:"idle,omitempty"`
	Lock     string      `json:"lock,omitempty"`
	Object   string      `json:"object,omitempty"`
	Owner    uint64      `json:"owner,omitempty"`
	Chain    []jsonChain `json:"owner_chain,omitempty"`
	Circle   bool        `json:"circle,omitempty"`
	Reported int64       `json:"reported_ns,omitempty"`
	Differs  bool        `json:"differs,omitempty"`
	Blocked  bool        `json:"blocked,omitempty"`
	Native   []string    `json:"native,omitempty"`
	Stack    []string    `json:"stack"`
}

type jsonChain struct {
	Thread uint64   `json:"thread"`
	Kind   string   `json:"kind"`
	Stack  []string `json:"stack"`
}

type jsonSite struct {
	Kind       string      `json:"kind"`
	Count      int64       `json:"count"`
	Nanos      int64       `json:"ns"`
	Max        int64       `json:"max_ns"`
	Bounds     int64       `json:"lower_bounds,omitempty"`
	Unreliable int64       `json:"unreliable,omitempty"`
	Idle       bool        `json:"idle,omitempty"`
	Native     []string    `json:"native,omitempty"`
	Frames     []jsonFrame `json:"frames"`
}

type jsonFrame struct {
	Name    string `json:"name"`
	Module  string `json:"module,omitempty"`
	Address string `json:"address,omitempty"`
	Managed bool   `json:"managed"`
}

type jsonThread struct {
	ID    uint64 `json:"id"`
	Name  string `json:"name,omitempty"`
	Count int64  `json:"count"`
	Nanos int64  `json:"ns"`
	Max   int64  `json:"max_ns"`
}

// WriteJSON writes the whole analysis. The package comment describes the fields.
func WriteJSON(w io.Writer, a *waits.Analysis) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(newJSON(a))
}

func newJSON(a *waits.Analysis) *jsonReport {
	n, o := newNames(a), waits.NewOwners(a)
	r := &jsonReport{Format: "seedwalk-waits", Version: 1, Duration: int64(a.At(a.Last)), Unseen: a.Unseen(),
		Partial: a.Partial(), Unreliable: a.Unreliable, Orphans: a.Orphans,
		Unlisted: a.Unlisted, Waits: []jsonWait{}, Sites: []jsonSite{}, Threads: []jsonThread{},
		Process: jsonProcess{a.Trace.ProcessID, a.Names.Process.CommandLine,
			runtimeName(a), a.Trace.PointerSize}}
	if r.Process.CommandLine == "" {
		r.Process.CommandLine = a.Names.Runtime.CommandLine
	}
	r.Process.CommandLine = clean(r.Process.CommandLine)
	if !a.Trace.Start.IsZero() {
		r.Start = &a.Trace.Start
	}
	r.Events.Read, r.Events.Lost = a.Counts.Events, a.Counts.Lost
	r.Total.Waits, r.Total.Nanos = a.Total()
	for i := range a.Waits {
		r.Waits = append(r.Waits, newJSONWait(a, n, o, &a.Waits[i]))
	}
	for i := range a.Sites {
		r.Sites = append(r.Sites, newJSONSite(a, n, &a.Sites[i]))
	}
	for _, t := range a.Threads {
		r.Threads = append(r.Threads,
			jsonThread{t.ID, clean(a.Names.ThreadName(t.ID)), t.Count, t.Nanos, t.Max})
	}
	return r
}

func newJSONWait(a *waits.Analysis, n *stackNames, o *waits.Owners, w *waits.Wait) jsonWait {
	frames := n.of(w.Stack, w.Start)
	j := jsonWait{Kind: w.Kind.String(), Event: w.Kind.Event(), State: w.State.String(),
		Reliable: w.State == waits.Complete,
		Thread:   w.Thread, Process: w.Process, Name: clean(a.Names.ThreadName(w.Thread)),
		Start: int64(a.At(w.Start)), Stop: int64(a.At(w.Stop)), Duration: w.Nanos,
		Depth: w.Depth, Idle: waits.Idle(frames), Lock: hex(w.LockID), Object: hex(w.Object), Owner: w.Owner,
		Reported: w.Reported, Differs: w.Differs,
		Blocked: w.Blocked, Native: names(a.Leaves(w.Native, w.Start)),
		Stack: names(a.Whole(w.Native, frames, w.Start))}
	chain, circle := o.Chain(w)
	for _, i := range chain {
		c := &a.Waits[i]
		j.Chain = append(j.Chain, jsonChain{c.Thread, c.Kind.String(), names(n.of(c.Stack, c.Start))})
	}
	j.Circle = circle
	return j
}

func newJSONSite(a *waits.Analysis, n *stackNames, s *waits.Site) jsonSite {
	frames := n.of(s.Stack, s.When)
	j := jsonSite{Kind: s.Kind.String(), Count: s.Count, Nanos: s.Nanos, Max: s.Max, Bounds: s.Bounds,
		Unreliable: s.Lost, Idle: waits.Idle(frames), Native: names(a.Leaves(s.Native, s.When))}
	whole := a.Whole(s.Native, frames, s.When)
	for i := range whole {
		f := &whole[i]
		j.Frames = append(j.Frames, jsonFrame{frameName(f), clean(f.Module), hex(f.Addr), f.Managed})
	}
	return j
}

func hex(v uint64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%#x", v)
}

// runtimeName returns the runtime's version, "" if the trace does not contain it.
func runtimeName(a *waits.Analysis) string {
	v := a.Names.Runtime.Version
	if v == [4]uint16{} {
		return ""
	}
	patch := v[2]
	if v[0] >= 5 {
		patch /= 100 // the year follows the patch: 9.0.525 is 9.0.5 of 2025
	}
	return fmt.Sprintf(".NET %d.%d.%d", v[0], v[1], patch)
}

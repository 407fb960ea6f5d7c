package export

import "time"

// Recording holds the properties and the figures of a recording. The profile's file and the lines
// of `record --json` and `report --json` begin with these fields (docs/json.md).
type Recording struct {
	Format        string   `json:"format"`
	Version       int      `json:"version"`
	Command       []string `json:"command"`
	Runtime       string   `json:"runtime"`
	Start         string   `json:"start,omitempty"`
	DurationNanos int64    `json:"duration_ns"`
	RateHz        float64  `json:"rate_hz"`
	Figures       `json:"stats"`
}

// Figures are Stats as JSON.
type Figures struct {
	Samples   int64            `json:"samples"`
	Complete  int64            `json:"complete"`
	Gaps      map[string]int64 `json:"gaps"`
	Threads   int              `json:"threads"`
	Stacks    int              `json:"distinct_stacks"`
	Suspended Quantiles        `json:"suspended"`
	Parts     []Part           `json:"suspended_parts,omitempty"`
	Tries     []Tries          `json:"tries,omitempty"`
	Retries   int64            `json:"retries"`
	Lost      int64            `json:"lost"`
	Notes     []string         `json:"notes"`
	Empty     string           `json:"empty,omitempty"`
	ExitNote  string           `json:"exit_note,omitempty"`
	Way       string           `json:"way,omitempty"`
	WayWhy    string           `json:"way_why,omitempty"`
	Clock     *FigureClock     `json:"clock,omitempty"`
	CPU       *FigureCPU       `json:"cpu,omitempty"`
	Counters  map[string]int64 `json:"counters,omitempty"`
	Events    []FigureEvents   `json:"events,omitempty"`
}

// FigureClock is a Clock.
type FigureClock struct {
	Name      string        `json:"name"`
	UserOnly  bool          `json:"user_only,omitempty"`
	Stretches int64         `json:"stretches,omitempty"`
	Timers    int64         `json:"timers,omitempty"`
	LateP90   time.Duration `json:"late_p90_ns,omitempty"`
	Hits      int64         `json:"hits,omitempty"`
	Rejected  int64         `json:"rejected,omitempty"`
}

// FigureCPU is a CPUTime.
type FigureCPU struct {
	Process    int64         `json:"process_ns"`
	Profile    int64         `json:"profile_ns"`
	Kernel     int64         `json:"kernel_ns"`
	NotSampled []FigureCause `json:"not_sampled"`
}

// FigureCause is CPU time without samples.
type FigureCause struct {
	Cause string `json:"cause"`
	Nanos int64  `json:"ns"`
}

// FigureEvents are EventStats.
type FigureEvents struct {
	Event    string `json:"event"`
	Seen     int64  `json:"seen"`
	Count    int64  `json:"count"`
	Complete int64  `json:"complete"`
	Sum      int64  `json:"sum"`
	Longest  int64  `json:"longest_ns"`
	Open     int64  `json:"open"`
}

// NewRecording returns the Recording of a profile. format names the output that begins with it.
func NewRecording(format string, p *Profile) Recording {
	r := Recording{Format: format, Version: JSONVersion, Command: list(p.Command), Runtime: p.Runtime,
		DurationNanos: int64(p.Duration), RateHz: p.RateHz, Figures: figures(p)}
	if !p.Start.IsZero() {
		r.Start = p.Start.UTC().Format(time.RFC3339Nano)
	}
	return r
}

func figures(p *Profile) Figures {
	s := &p.Stats
	f := Figures{Samples: s.Samples, Complete: s.Complete, Gaps: s.Gaps,
		Threads: int(p.threadCount()), Stacks: len(p.Stacks),
		Suspended: s.Suspended, Parts: s.Parts, Tries: s.Tries, Retries: s.Retries, Lost: s.Lost,
		Notes: list(s.Notes), Empty: s.Empty, ExitNote: s.ExitNote,
		Way: s.Way, WayWhy: s.WayWhy, Counters: s.Counters,
		Events: convert(s.Events, func(e *EventStats) FigureEvents {
			return FigureEvents{e.Event.String(), e.Seen, e.Count, e.Complete, e.Sum, e.Longest, e.Open}
		})}
	if c := s.Clock; c != nil {
		f.Clock = &FigureClock{c.Kind.String(), c.UserOnly, c.Stretches, c.Timers, c.LateP90, c.Hits,
			c.Rejected}
	}
	if c := s.CPU; c != nil {
		f.CPU = &FigureCPU{Process: c.Process, Profile: c.Profile,
			Kernel: c.Kernel, NotSampled: []FigureCause{}}
		for i, n := range c.NotSampled {
			if n > 0 && i < len(Causes) {
				f.CPU.NotSampled = append(f.CPU.NotSampled, FigureCause{Causes[i], n})
			}
		}
	}
	if f.Gaps == nil {
		f.Gaps = map[string]int64{}
	}
	return f
}

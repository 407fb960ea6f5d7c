package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seedwalk/seedwalk/report/export"
)

// totals are the sums of a recording so far.
type totals struct {
	at        time.Time
	samples   int64
	cpu       int64 // nanoseconds of the process
	functions map[string]topRow
	threads   map[string]topRow // by ID: a thread may get another name
	types     map[string]topRow
}

// topRow is one row of a view, of an interval or since the start.
type topRow struct {
	Name  string  `json:"name"`
	Self  float64 `json:"self"` // share of one processor, or bytes a second
	Total float64 `json:"total,omitempty"`
}

// topView is what a process did in an interval.
type topView struct {
	Format    string             `json:"format"`
	Version   int                `json:"version"`
	Time      time.Time          `json:"time"`
	PID       int                `json:"pid"`
	Runtime   string             `json:"runtime"`
	Seconds   float64            `json:"seconds"` // of the interval
	Samples   int64              `json:"samples"`
	CPU       float64            `json:"cpu"` // processors in use
	Functions []topRow           `json:"functions"`
	Threads   []topRow           `json:"threads"`
	Types     []topRow           `json:"allocated"` // bytes a second
	Counters  map[string]float64 `json:"counters,omitempty"`
}

// sum adds up a profile.
func sum(p *export.Profile, at time.Time) totals {
	q := *p
	q.First = "cpu"
	t := totals{at: at, samples: p.Stats.Samples, functions: map[string]topRow{},
		threads: map[string]topRow{}, types: map[string]topRow{}}
	add := func(rows map[string]topRow, key, name string, self, total int64) {
		r := rows[key]
		rows[key] = topRow{name, r.Self + float64(self), r.Total + float64(total)}
	}
	all, _ := export.Functions(&q)
	for i := range all {
		f := &all[i]
		name := f.Name
		if f.Module != "" {
			name += "  " + f.Module
		}
		add(t.functions, name, name, f.Self, f.Total)
	}
	for i := range p.Stacks {
		s := &p.Stacks[i]
		th := &p.Threads[s.Thread]
		if s.Event == export.EventAllocation {
			add(t.types, s.Type, s.Type, s.Sum, 0)
		}
		if s.CPUNanos > 0 && th.ID != 0 {
			id := fmt.Sprint(th.ID)
			add(t.threads, id, strings.TrimSpace(id+" "+th.Name), s.CPUNanos, 0)
		}
		t.cpu += s.CPUNanos
	}
	if p.Stats.CPU != nil {
		t.cpu = p.Stats.CPU.Process
	}
	return t
}

// maxRows bounds the rows of each table of a view.
const maxRows = 100

// between returns the view of the time between two totals. CPU time is scaled to the clocks of the
// threads, so that a sum may decrease a little: such rows are left out.
func between(a, b *totals) *topView {
	seconds := max(b.at.Sub(a.at).Seconds(), 0.001)
	rates := func(x, y map[string]topRow, unit float64) []topRow {
		out := []topRow{}
		for key, r := range y {
			r.Self, r.Total = max(0, r.Self-x[key].Self)/unit/seconds,
				max(0, r.Total-x[key].Total)/unit/seconds
			if r.Self > 0 || r.Total > 0 {
				out = append(out, r)
			}
		}
		sortRows(out, false)
		return out[:min(len(out), maxRows)]
	}
	return &topView{Format: "seedwalk-top", Version: 1, Time: b.at, Seconds: seconds,
		Samples: max(0, b.samples-a.samples), CPU: max(0, float64(b.cpu-a.cpu)/1e9/seconds),
		Functions: rates(a.functions, b.functions, 1e9), Threads: rates(a.threads, b.threads, 1e9),
		Types: rates(a.types, b.types, 1)}
}

func sortRows(rows []topRow, byTotal bool) {
	slices.SortFunc(rows, func(x, y topRow) int {
		if d := cmp.Compare(y.Total, x.Total); byTotal && d != 0 {
			return d
		}
		return cmp.Or(cmp.Compare(y.Self, x.Self), cmp.Compare(y.Total, x.Total),
			strings.Compare(x.Name, y.Name))
	})
}

// shownCounters are the counters of the head line, with their units.
var shownCounters = []struct{ name, label, format string }{
	{"gen-0-gc-count", "gen 0 GCs", "%.0f"}, {"total-pause-time-by-gc", "GC pauses", "%.0f ms"},
	{"gc-heap-size", "heap", "%.0f MB"},
	{"exception-count", "exceptions", "%.0f"}, {"monitor-lock-contention-count", "contended locks", "%.0f"},
	{"threadpool-thread-count", "pool threads", "%.0f"}, {"threadpool-queue-length", "pool queue", "%.0f"},
}

// screen draws the view for a terminal.
func (v *topView) screen(width, height int, byTotal, paused bool) string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	state := ""
	if paused {
		state = "   PAUSED"
	}
	say("seedwalk top %d  %s  %s   %.2f processors   %d samples%s", v.PID, v.Runtime,
		v.Time.Format("15:04:05"), v.CPU, v.Samples, state)
	var load []string
	for _, c := range shownCounters {
		if value, ok := v.Counters[c.name]; ok {
			load = append(load, c.label+" "+fmt.Sprintf(c.format, value))
		}
	}
	say("%s", strings.Join(load, "   "))
	side := max(2, (height-6)/4)
	functions := slices.Clone(v.Functions)
	sortRows(functions, byTotal)
	if byTotal {
		say("   self  total*  function")
	} else {
		say("  self*   total  function")
	}
	for _, r := range functions[:min(len(functions), max(1, height-2*side-6))] {
		say("%5.1f %% %5.1f %%  %s", 100*r.Self, 100*r.Total, r.Name)
	}
	say("    cpu  thread")
	for _, r := range v.Threads[:min(len(v.Threads), side)] {
		say("%5.1f %%  %s", 100*r.Self, r.Name)
	}
	if len(v.Types) > 0 {
		say("  MB/s  allocated type")
		for _, r := range v.Types[:min(len(v.Types), side)] {
			say("%6.1f  %s", r.Self/1e6, r.Name)
		}
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines[:min(len(lines), height-1)] {
		b.WriteString(fit(line, width) + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J" + fit("s self  t total  space pause  q quit", width-1))
	return b.String()
}

// fit cuts a line to a width, and replaces what a terminal would act on.
func fit(line string, width int) string {
	out := make([]rune, 0, width)
	for _, r := range line {
		if len(out) == width {
			break
		}
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		out = append(out, r)
	}
	return string(out)
}

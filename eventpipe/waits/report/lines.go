package report

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// WriteCSV writes a header and a line per listed wait.
func WriteCSV(w io.Writer, a *waits.Analysis) error {
	n, c := newNames(a), csv.NewWriter(w)
	c.Write([]string{"start_s", "duration_ms", "kind", "event", "state", "thread", "thread_name", "lock",
		"owner", "depth", "idle", "events_lost", "stack", "native"})
	for i := range a.Waits {
		v := &a.Waits[i]
		frames := n.of(v.Stack, v.Start)
		owner := ""
		if v.Owner != 0 {
			owner = strconv.FormatUint(v.Owner, 10)
		}
		c.Write([]string{fmt.Sprintf("%.6f", a.At(v.Start).Seconds()),
			fmt.Sprintf("%.3f", float64(v.Nanos)/1e6), v.Kind.String(), v.Kind.Event(), v.State.String(),
			strconv.FormatUint(v.Thread, 10), clean(a.Names.ThreadName(v.Thread)), hex(v.LockID), owner,
			strconv.Itoa(int(v.Depth)), strconv.FormatBool(waits.Idle(frames)),
			strconv.FormatInt(a.Counts.Lost, 10),
			strings.Join(names(a.Whole(v.Native, frames, v.Start)), " < "),
			strings.Join(names(a.Leaves(v.Native, v.Start)), " < ")})
	}
	c.Flush()
	return c.Error()
}

// WriteFolded writes one line per stack: names from root to leaf, the kind of
// wait as the leaf, and nanoseconds. Reasons why the result is partial are in
// lines that begin with '#'.
func WriteFolded(w io.Writer, a *waits.Analysis) error {
	n, sums := newNames(a), map[string]int64{}
	for i := range a.Groups {
		s := &a.Groups[i]
		if s.Inner {
			continue
		}
		parts := append(names(a.Leaves(s.Native, s.When)),
			names(a.Whole(s.Native, n.of(s.Stack, s.When), s.When))...)
		slices.Reverse(parts)
		for j := range parts {
			parts[j] = strings.ReplaceAll(parts[j], ";", ":")
		}
		sums[strings.Join(append(parts, "["+s.Kind.String()+"]"), ";")] += s.Nanos
	}
	b := bufio.NewWriter(w)
	for _, p := range a.Partial() {
		fmt.Fprintf(b, "# %s\n", clean(p))
	}
	var lines []string
	for l, nanos := range sums {
		if nanos > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", l, nanos))
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Fprintln(b, l)
	}
	return b.Flush()
}

// WritePprof writes a gzipped profile.proto: waits/count and delay/nanoseconds,
// labels thread, thread_name, kind, lock, owner, reliable and, for the thread
// pool's own waits, idle.
func WritePprof(w io.Writer, a *waits.Analysis) error {
	p := newPprof(a)
	if err := p.out.CheckValid(); err != nil {
		return err
	}
	return p.out.Write(w)
}

type pprofWriter struct {
	a         *waits.Analysis
	out       *profile.Profile
	locations map[waits.Frame]*profile.Location
	functions map[[2]string]*profile.Function
	mappings  map[string]*profile.Mapping
}

func newPprof(a *waits.Analysis) *pprofWriter {
	p := &pprofWriter{a, &profile.Profile{DefaultSampleType: "delay", Period: 1},
		map[waits.Frame]*profile.Location{}, map[[2]string]*profile.Function{}, map[string]*profile.Mapping{}}
	o := p.out
	o.SampleType = []*profile.ValueType{{Type: "waits", Unit: "count"}, {Type: "delay", Unit: "nanoseconds"}}
	o.PeriodType = &profile.ValueType{Type: "waits", Unit: "count"}
	o.DurationNanos = int64(a.At(a.Last))
	if !a.Trace.Start.IsZero() {
		o.TimeNanos = a.Trace.Start.UnixNano()
	}
	o.Comments = append([]string{fmt.Sprintf("events lost: %d", a.Counts.Lost)}, a.Partial()...)
	for i := range o.Comments {
		o.Comments[i] = clean(o.Comments[i])
	}
	n := newNames(a)
	for i := range a.Groups {
		if g := &a.Groups[i]; !g.Inner {
			p.sample(g, n.of(g.Stack, g.When))
		}
	}
	return p
}

func (p *pprofWriter) sample(g *waits.Group, frames []waits.Frame) {
	s := &profile.Sample{Value: []int64{g.Count, g.Nanos},
		NumLabel: map[string][]int64{"thread": {int64(g.Thread)}},
		Label:    map[string][]string{"kind": {g.Kind.String()}, "reliable": {reliable(g.State)}}}
	if name := p.a.Names.ThreadName(g.Thread); name != "" {
		s.Label["thread_name"] = []string{clean(name)}
	}
	if g.LockID != 0 {
		s.Label["lock"] = []string{hex(g.LockID)}
	}
	if g.Owner != 0 {
		s.NumLabel["owner"] = []int64{int64(g.Owner)}
	}
	if waits.Idle(frames) {
		s.Label["idle"] = []string{"yes"}
	}
	for _, f := range append(p.a.Leaves(g.Native, g.When), p.a.Whole(g.Native, frames, g.When)...) {
		s.Location = append(s.Location, p.location(f))
	}
	p.out.Sample = append(p.out.Sample, s)
}

func (p *pprofWriter) location(f waits.Frame) *profile.Location {
	l := p.locations[f]
	if l == nil {
		l = &profile.Location{ID: uint64(len(p.out.Location) + 1), Address: f.Addr, Mapping: p.mapping(&f),
			Line: []profile.Line{{Function: p.function(&f)}}}
		p.locations[f] = l
		p.out.Location = append(p.out.Location, l)
	}
	return l
}

func (p *pprofWriter) function(f *waits.Frame) *profile.Function {
	k := [2]string{frameName(f), clean(f.Module)}
	fn := p.functions[k]
	if fn == nil {
		fn = &profile.Function{ID: uint64(len(p.out.Function) + 1), Name: k[0],
			SystemName: k[0], Filename: k[1]}
		p.functions[k] = fn
		p.out.Function = append(p.out.Function, fn)
	}
	return fn
}

// mapping returns the mapping of a module. The code of a managed module is not in its mapping,
// so that mapping has no range.
func (p *pprofWriter) mapping(f *waits.Frame) *profile.Mapping {
	name := clean(f.Module)
	if name == "" {
		return nil
	}
	m := p.mappings[name]
	if m == nil {
		m = &profile.Mapping{ID: uint64(len(p.out.Mapping) + 1), File: name, HasFunctions: true}
		for i := range p.a.Names.Images {
			if im := &p.a.Names.Images[i]; !f.Managed && f.Addr >= im.Start && f.Addr < im.End {
				m.Start, m.Limit, m.Offset, m.File, m.BuildID = im.Start, im.End,
					im.Offset, clean(im.Path), im.BuildID
			}
		}
		p.mappings[name] = m
		p.out.Mapping = append(p.out.Mapping, m)
	}
	return m
}

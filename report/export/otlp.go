package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export/otlp"
)

// WriteOTLP writes OpenTelemetry profiles, as protocol buffers: one profile for each metric with values, the
// default metric first. Wall and CPU time of samples have their times. A frame without a name has no line,
// and its mapping is marked.
func WriteOTLP(w io.Writer, p *Profile) error {
	d, err := otlpData(p)
	if err == nil {
		_, err = w.Write(otlp.Marshal(d))
	}
	return err
}

// WriteOTLPJSON is WriteOTLP in the JSON form, one line.
func WriteOTLPJSON(w io.Writer, p *Profile) error {
	d, err := otlpData(p)
	if err != nil {
		return err
	}
	b, err := otlp.JSON(d)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// Attributes that OpenTelemetry has no name for begin with ownAttribute.
const ownAttribute = "seedwalk."

// otlpAttributes are OpenTelemetry's names for the labels of pprof.
var otlpAttributes = map[string]string{labelThread: "thread.name", labelThreadID: "thread.id"}

// otlpFrameTypes are OpenTelemetry's names for kinds of code, "" = none is written.
var otlpFrameTypes = [numClasses]string{ClassManaged: "dotnet", ClassStub: "dotnet", ClassNative: "native",
	ClassRuntime: "native", ClassKernel: "kernel", ClassAsync: "dotnet", ClassResumer: "dotnet"}

// otlpWriter converts the tables of pprof to those of OpenTelemetry, as samples need them.
type otlpWriter struct {
	p          *Profile
	pprof      *pprofWriter
	out        *otlp.Dictionary
	strings    map[string]int32
	attributes map[otlpAttribute]int32
	stacks     map[string]int32
	mappings   map[*profile.Mapping]int32
	functions  map[*profile.Function]int32
	locations  map[*profile.Location]int32
	links      map[Activity]int32
	timed      [][]int32 // for each stack, the indexes of its entries in Profile.Samples
}

type otlpAttribute struct {
	key   string
	value any // string, int64, or bool
}

func otlpData(p *Profile) (*otlp.Data, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	d := &otlp.Data{Dictionary: otlp.Dictionary{Mappings: make([]otlp.Mapping, 1),
		Locations: make([]otlp.Location, 1), Functions: make([]otlp.Function, 1),
		Links: make([]otlp.Link, 1), Strings: []string{""}, Attributes: make([]otlp.KeyValueAndUnit, 1),
		Stacks: make([]otlp.Stack, 1)}}
	w := &otlpWriter{p: p, pprof: newPprofWriter(p), out: &d.Dictionary, strings: map[string]int32{"": 0},
		attributes: map[otlpAttribute]int32{},
		stacks:     map[string]int32{"": 0}, mappings: map[*profile.Mapping]int32{nil: 0},
		functions: map[*profile.Function]int32{},
		locations: map[*profile.Location]int32{}, links: map[Activity]int32{},
		timed: make([][]int32, len(p.Stacks))}
	w.pprof.profile()
	for i := range p.Samples {
		s := p.Samples[i].Stack
		w.timed[s] = append(w.timed[s], int32(i))
	}
	of := otlp.ResourceProfiles{Resource: otlp.Resource{Attributes: w.resource()},
		Scopes: []otlp.ScopeProfiles{{Scope: otlp.Scope{Name: "seedwalk"}, Profiles: w.profiles()}}}
	for i := range of.Scopes[0].Profiles {
		op := &of.Scopes[0].Profiles[i]
		id := sha256.Sum256(append(otlp.Marshal(&of.Resource), otlp.Marshal(op)...))
		op.ID = id[:16] // a retry sends the same ID, so that a backend can drop it
	}
	d.Resources = []otlp.ResourceProfiles{of}
	return d, nil
}

// resource returns the attributes of the recorded process.
func (w *otlpWriter) resource() (out []otlp.KeyValue) {
	all := map[string]string{"service.name": "unknown_service"}
	if name := cmp.Or(programName(w.p.Command), w.p.Resource["process.executable.name"]); name != "" {
		all["service.name"] += ":" + name
	}
	if len(w.p.Command) > 0 {
		all["process.command_line"] = strings.Join(w.p.Command, " ")
	}
	if name, version, ok := strings.Cut(w.p.Runtime, " "); ok {
		all["process.runtime.name"], all["process.runtime.version"] = name, version
	}
	maps.Copy(all, w.p.Resource)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, otlp.KeyValue{Key: clean(key), Value: otlpValue(clean(all[key]))})
	}
	if w.p.PID != 0 {
		out = append(out, otlp.KeyValue{Key: "process.pid", Value: otlpValue(int64(w.p.PID))})
	}
	return out
}

// programName returns the assembly of a command, or its program.
func programName(command []string) (name string) {
	for _, arg := range command {
		if ext := filepath.Ext(arg); ext == ".dll" || ext == ".exe" {
			return strings.TrimSuffix(Base(arg), ext)
		}
		name = cmp.Or(name, Base(arg))
	}
	return name
}

func (w *otlpWriter) profiles() (out []otlp.Profile) {
	shown, first := slices.Clone(w.pprof.shown), w.p.defaultMetric()
	if i := slices.Index(shown, first); i > 0 {
		shown = slices.Insert(slices.Delete(shown, i, i+1), 0, first)
	}
	for _, at := range shown {
		var samples []otlp.Sample
		for i := range w.p.Stacks {
			if value := valuesOf(&w.p.Stacks[i])[at]; value != 0 {
				samples = append(samples, w.samples(i, at, value)...)
			}
		}
		if len(samples) > 0 {
			out = append(out, w.profile(at, samples))
		}
	}
	return out
}

func (w *otlpWriter) profile(at int, samples []otlp.Sample) otlp.Profile {
	st := &w.p.Stats
	p := otlp.Profile{Type: w.valueType(metrics[at].name, metrics[at].unit),
		Duration: uint64(w.p.Duration), Samples: samples,
		Attributes: w.indices([]otlpAttribute{{ownAttribute + "samples", st.Samples},
			{ownAttribute + "samples.complete", st.Complete}, {ownAttribute + "samples.dropped", st.Lost}})}
	if !w.p.Start.IsZero() {
		p.Time = otlp.Fixed(w.p.Start.UnixNano())
	}
	if period := w.pprof.out.Period; period > 0 && slices.Contains(eventValues[NoEvent], at) {
		p.PeriodType, p.Period = w.valueType(metricWall, "nanoseconds"), period
	}
	return p
}

func (w *otlpWriter) valueType(name, unit string) otlp.ValueType {
	return otlp.ValueType{Type: w.string(name), Unit: w.string(unit)}
}

// samples returns a stack's value of a metric. Wall and CPU time become one sample for each Activity,
// with a value and a time for each recorded sample of the stack. If these values do not add up to the
// stack's value, and for other metrics, it is one sample with that value.
func (w *otlpWriter) samples(i, at int, value int64) []otlp.Sample {
	ps := w.pprof.out.Sample[i]
	s := otlp.Sample{Stack: w.stack(ps.Location), Attributes: w.labels(ps),
		Values: []otlp.Int{otlp.Int(value)}}
	if at != valueWall && at != valueCPU {
		return []otlp.Sample{s}
	}
	var sum, count int64
	var out []otlp.Sample
	of := map[*Activity]int{}
	share := w.p.Stacks[i].cpuCount()
	for _, k := range w.timed[i] {
		sample := &w.p.Samples[k]
		v := sample.Wall
		if at == valueCPU {
			if v = 0; sample.CPU && share > 0 {
				v = timesOf(value, count+1, share) - timesOf(value, count, share)
				count++
			}
		}
		if v == 0 {
			continue
		}
		n, ok := of[sample.Activity]
		if !ok {
			n = len(out)
			of[sample.Activity] = n
			out = append(out, otlp.Sample{Stack: s.Stack, Attributes: s.Attributes,
				Link: w.link(sample.Activity)})
		}
		out[n].Values, out[n].Times, sum = append(out[n].Values, otlp.Int(v)),
			append(out[n].Times, otlp.Fixed(sample.At)), sum+v
	}
	if sum == value {
		return out
	}
	return []otlp.Sample{s}
}

// link returns the index of an Activity's link, 0 for none.
func (w *otlpWriter) link(a *Activity) int32 {
	if a == nil {
		return 0
	}
	return intern.At(w.links, &w.out.Links, *a,
		func() otlp.Link { return otlp.Link{Trace: a.Trace[:], Span: a.Span[:]} })
}

// labels returns the attributes of a sample.
func (w *otlpWriter) labels(ps *profile.Sample) []int32 {
	var all []otlpAttribute
	for key, values := range ps.Label {
		all = append(all, otlpAttribute{cmp.Or(otlpAttributes[key], ownAttribute+key), values[0]})
	}
	for key, values := range ps.NumLabel {
		all = append(all, otlpAttribute{cmp.Or(otlpAttributes[key], ownAttribute+key), values[0]})
	}
	slices.SortFunc(all, func(a, b otlpAttribute) int { return cmp.Compare(a.key, b.key) })
	return w.indices(all)
}

func (w *otlpWriter) indices(all []otlpAttribute) (out []int32) {
	for _, a := range all {
		out = append(out, intern.At(w.attributes, &w.out.Attributes, a, func() otlp.KeyValueAndUnit {
			return otlp.KeyValueAndUnit{Key: w.string(a.key), Value: otlpValue(a.value)}
		}))
	}
	return out
}

func otlpValue(v any) (out otlp.Value) {
	switch v := v.(type) {
	case string:
		out.String = &v
	case int64:
		out.Int = &v
	case bool:
		out.Bool = &v
	}
	return out
}

func (w *otlpWriter) string(s string) int32 {
	return intern.Value(w.strings, &w.out.Strings, s)
}

func (w *otlpWriter) stack(frames []*profile.Location) int32 {
	var s otlp.Stack
	var key []byte
	for _, l := range frames {
		n := w.location(l)
		s.Locations, key = append(s.Locations, n), binary.AppendUvarint(key, uint64(n))
	}
	return intern.At(w.stacks, &w.out.Stacks, string(key), func() otlp.Stack { return s })
}

func (w *otlpWriter) location(l *profile.Location) int32 {
	return intern.At(w.locations, &w.out.Locations, l, func() otlp.Location { return w.newLocation(l) })
}

func (w *otlpWriter) newLocation(l *profile.Location) otlp.Location {
	s := w.pprof.symbols[l.ID-1]
	all := []otlpAttribute{{ownAttribute + "frame.class", s.class.String()}}
	if kind := otlpFrameTypes[s.class]; kind != "" {
		all = append(all, otlpAttribute{"profile.frame.type", kind})
	}
	if s.doubtful {
		all = append(all, otlpAttribute{ownAttribute + "frame.doubtful", true})
	}
	ol := otlp.Location{Mapping: w.mapping(l.Mapping), Address: l.Address, Attributes: w.indices(all)}
	for _, line := range l.Line {
		ol.Lines = append(ol.Lines, otlp.Line{Function: w.function(line.Function), Line: line.Line})
	}
	return ol
}

func (w *otlpWriter) function(f *profile.Function) int32 {
	return intern.At(w.functions, &w.out.Functions, f, func() otlp.Function {
		return otlp.Function{Name: w.string(f.Name), SystemName: w.string(f.SystemName),
			File: w.string(f.Filename)}
	})
}

func (w *otlpWriter) mapping(m *profile.Mapping) int32 {
	return intern.At(w.mappings, &w.out.Mappings, m, func() otlp.Mapping { return w.newMapping(m) })
}

func (w *otlpWriter) newMapping(m *profile.Mapping) otlp.Mapping {
	all := []otlpAttribute{{"pprof.mapping.has_functions", m.HasFunctions}}
	if m.BuildID != "" {
		key := "process.executable.build_id.gnu"
		if len(m.BuildID) <= 8 { // the time stamp of an image of Windows
			key = ownAttribute + "image.stamp"
		}
		all = append(all, otlpAttribute{key, m.BuildID})
	}
	return otlp.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: w.string(m.File),
		Attributes: w.indices(all)}
}

package export

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/seedwalk/seedwalk/report/export/page"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// cpuTimes are the CPU nanoseconds of each innermost function.
type cpuTimes map[string]int64

// The same profile has the same figures in every format that has CPU time, as a reader of that format
// finds them.
func TestEqualFigures(t *testing.T) {
	readers := map[string]func(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes{
		"pprof": pprofFigures, "html": htmlFigures, "folded": foldedFigures, "speedscope": speedscopeFigures,
		"firefox": firefoxFigures, "otlp-json": otlpFigures, "json": jsonFigures, "text": topFigures,
	}
	without := map[string]string{"trace": "only when threads ran", "otlp": "the same message as otlp-json"}
	for name, p := range map[string]*Profile{"samples with times": timed(), "sums": handMade(),
		"time without samples": accounted(), "events": withEvents(), "many": large(300, 40)} {
		want := cpuTimes{}
		for i := range p.Stacks {
			if s := &p.Stacks[i]; s.CPUNanos > 0 {
				leaf := symbolOf(&p.Frames[s.Frames[0]])
				want[leaf.label()] += s.CPUNanos
			}
		}
		for _, f := range Formats() {
			t.Run(name+"/"+f.Name, func(t *testing.T) {
				read := readers[f.Name]
				if read == nil && without[f.Name] == "" {
					t.Fatal("add a reader of this format to readers, or to without the reason why it has none")
				}
				if read == nil {
					return
				}
				got := read(t, p, f.Write)
				expect.True(t, maps.Equal(got, want), "%v, want %v", got, want)
			})
		}
	}
}

// add adds time to the innermost function of a stack.
func (f cpuTimes) add(leaf string, nanos int64) {
	if nanos > 0 {
		f[leaf] += nanos
	}
}

func pprofFigures(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes {
	q := must.Get(profile.ParseData(written(t, write, p)))(t)
	at := slices.IndexFunc(q.SampleType, func(v *profile.ValueType) bool { return v.Type == "cpu" })
	got := cpuTimes{}
	for _, s := range q.Sample {
		got.add(s.Location[0].Line[0].Function.Name, s.Value[at])
	}
	return got
}

func htmlFigures(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes {
	d := dataOf(t, string(written(t, write, p)))
	at := slices.IndexFunc(d.Metrics, func(m [4]any) bool { return m[0] == "cpu" })
	got := cpuTimes{}
	for _, row := range d.Stacks {
		for i := 0; i < len(row); i += 1 + len(d.Metrics) {
			s := d.Symbols[d.symbolOf(int(row[i]))]
			name := s[0].(string)
			if int(s[2].(float64))&page.DoubtfulBit != 0 {
				name += " [doubtful]"
			}
			got.add(name, row[i+1+at])
		}
	}
	return got
}

func foldedFigures(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes {
	got := cpuTimes{}
	for line := range strings.Lines(string(written(t, write, p))) {
		at := strings.LastIndexByte(line, ' ')
		n := must.Get(strconv.ParseInt(strings.TrimSpace(line[at+1:]), 10, 64))(t)
		got.add(line[strings.LastIndexByte(line[:at], ';')+1:at], n)
	}
	return got
}

func speedscopeFigures(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes {
	var f struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Name    string
			Samples [][]int
			Weights []int64
		}
	}
	unmarshal(t, written(t, write, p), &f)
	got := cpuTimes{}
	for _, q := range f.Profiles {
		for i, s := range q.Samples {
			if q.Name == "all threads, CPU time" {
				got.add(f.Shared.Frames[s[len(s)-1]].Name, q.Weights[i])
			}
		}
	}
	return got
}

func firefoxFigures(t *testing.T, p *Profile, _ func(io.Writer, *Profile) error) cpuTimes {
	f := readFirefox(t, p)
	got := cpuTimes{}
	for _, th := range f.Threads {
		for i, stack := range th.Samples.Stack {
			if stack != nil {
				got.add(callers(f, stack)[0], th.Samples.CPU[i])
			}
		}
	}
	return got
}

func jsonFigures(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes {
	var f struct {
		Frames []struct {
			Name     string
			Doubtful bool
		}
		Stacks []struct {
			Frames []int
			CPU    int64 `json:"cpu_ns"`
		}
	}
	unmarshal(t, written(t, write, p), &f)
	got := cpuTimes{}
	for _, s := range f.Stacks {
		leaf := f.Frames[s.Frames[0]]
		if leaf.Doubtful {
			leaf.Name += " [doubtful]"
		}
		got.add(leaf.Name, s.CPU)
	}
	return got
}

func otlpFigures(t *testing.T, p *Profile, write func(io.Writer, *Profile) error) cpuTimes {
	var f struct {
		Dictionary struct {
			Strings   []string                                        `json:"stringTable"`
			Functions []struct{ NameStrindex int }                    `json:"functionTable"`
			Locations []struct{ Lines []struct{ FunctionIndex int } } `json:"locationTable"`
			Stacks    []struct{ LocationIndices []int }               `json:"stackTable"`
		}
		Resources []struct {
			Scopes []struct {
				Profiles []struct {
					Type    struct{ TypeStrindex int } `json:"sampleType"`
					Samples []struct {
						StackIndex int
						Values     []json.Number
					}
				}
			} `json:"scopeProfiles"`
		} `json:"resourceProfiles"`
	}
	unmarshal(t, written(t, write, p), &f)
	d := &f.Dictionary
	got := cpuTimes{}
	for _, q := range f.Resources[0].Scopes[0].Profiles {
		for _, s := range q.Samples {
			if d.Strings[q.Type.TypeStrindex] != "cpu" {
				continue
			}
			for _, v := range s.Values {
				n := must.Get(v.Int64())(t)
				leaf := d.Locations[d.Stacks[s.StackIndex].LocationIndices[0]].Lines[0]
				got.add(d.Strings[d.Functions[leaf.FunctionIndex].NameStrindex], n)
			}
		}
	}
	return got
}

// topFigures reads the functions of the table that the text begins with.
func topFigures(t *testing.T, p *Profile, _ func(io.Writer, *Profile) error) cpuTimes {
	all := must.Get(Functions(p))(t)
	got := cpuTimes{}
	for _, f := range all {
		s := symbol{name: f.Name, doubtful: f.Doubtful}
		got.add(s.label(), f.Self)
	}
	return got
}

func unmarshal(t *testing.T, b []byte, to any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	must.Do(t, d.Decode(to))
}

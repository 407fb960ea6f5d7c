package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

func recorded(t *testing.T) *waits.Analysis {
	t.Helper()
	f := must.Get(os.Open("../testdata/livestart.nettrace"))(t)
	defer f.Close()
	a := waits.New()
	must.Do(t, a.Read(f))
	a.Finish()
	return a
}

func write(t *testing.T, format string, a *waits.Analysis) string {
	t.Helper()
	f, ok := report.ByName(format)
	must.True(t, ok, "no format %s", format)
	var b bytes.Buffer
	must.Do(t, f.Write(&b, a))
	return b.String()
}

// TestGolden: the same trace gives the same bytes. Look at what changed before
// -update. The JSON has one wait of each kind: the table and the stacks have all.
func TestGolden(t *testing.T) {
	for _, format := range []string{"text", "folded", "csv", "json"} {
		a, path := recorded(t), filepath.Join("testdata", "livestart."+format)
		if format != "json" {
			golden.Check(t, path, write(t, format, a))
			continue
		}
		a.Waits = oneOfEach(a.Waits)
		golden.Check(t, path, unindented(t, write(t, format, a)))
	}
}

// unindented checks that a text is JSON with an indentation of one space. It returns the text with an object
// a line.
func unindented(t *testing.T, text string) string {
	var compact, indented bytes.Buffer
	must.Do(t, json.Compact(&compact, []byte(text)))
	must.Do(t, json.Indent(&indented, compact.Bytes(), "", " "))
	must.Equal(t, text, indented.String()+"\n", "the indented text")
	return strings.ReplaceAll(compact.String(), "},{", "},\n{")
}

// oneOfEach keeps the first wait of each kind, with and without an owner.
func oneOfEach(all []waits.Wait) (out []waits.Wait) {
	type kind struct {
		waits.Kind
		waits.State
		owned bool
	}
	met := map[kind]bool{}
	for _, w := range all {
		if k := (kind{w.Kind, w.State, w.Owner != 0}); !met[k] {
			met[k] = true
			out = append(out, w)
		}
	}
	return out
}

// TestSums: every format has the same time and number.
func TestSums(t *testing.T) {
	a := recorded(t)
	count, nanos := a.Total()
	var j struct {
		Total struct{ Waits, NS int64 }
		Waits []struct {
			Duration int64 `json:"duration_ns"`
			Depth    int
			Reliable bool
		}
		Sites []struct{ Count, NS int64 }
	}
	must.Do(t, json.Unmarshal([]byte(write(t, "json", a)), &j))
	var sum, sites int64
	for _, w := range j.Waits {
		if w.Depth == 0 {
			sum += w.Duration
		}
	}
	for _, s := range j.Sites {
		sites += s.NS
	}
	expect.True(t, sum == nanos && sites == nanos && j.Total.NS == nanos && j.Total.Waits == count,
		"JSON: %d, %d, %+v; want %d", sum, sites, j.Total, nanos)
	p, err := profile.ParseData([]byte(write(t, "pprof", a)))
	must.Do(t, err)
	var n, d int64
	for _, s := range p.Sample {
		n, d = n+s.Value[0], d+s.Value[1]
		expect.True(t, s.Label["kind"] != nil && s.Label["reliable"] != nil && s.NumLabel["thread"] != nil,
			"labels %v %v", s.Label, s.NumLabel)
	}
	if n != count || d != nanos || p.SampleType[0].Type != "waits" || p.SampleType[1].Type != "delay" ||
		p.SampleType[1].Unit != "nanoseconds" || p.DefaultSampleType != "delay" {
		t.Errorf("pprof: %d waits, %d ns, want %d, %d; %v", n, d, count, nanos, p.SampleType)
	}
	rows, err := csv.NewReader(strings.NewReader(write(t, "csv", a))).ReadAll()
	expect.True(t, err == nil && len(rows) == len(a.Waits)+1, "CSV: %d rows, %v", len(rows), err)
}

// hostile is a lock whose method has a name that means something to a page.
func hostile() *waits.Analysis {
	w := nettracefile.New(nettracefile.Options{PID: 1})
	w.Metadata(nettracefile.Meta{ID: 1, Provider: clrevent.Runtime, Event: 143, Version: 1},
		nettracefile.Meta{ID: 2, Provider: clrevent.Runtime, Event: 301},
		nettracefile.Meta{ID: 3, Provider: clrevent.Runtime, Event: 302})
	method := make([]byte, 36)
	method[17], method[24] = 0x10, 0xff // at 0x1000, 255 bytes
	for _, s := range []string{"</script><script>alert(1)</script>", "a;b\n\x1b[31m\u202e", ""} {
		for _, r := range s {
			method = append(method, byte(r), byte(r>>8))
		}
		method = append(method, 0, 0)
	}
	w.Stacks(1, []uint64{0x1010})
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 5, Time: 1, Payload: append(method, 0, 0)},
		nettracefile.Event{Meta: 2, Seq: 2, Thread: 5, Time: 2, Stack: 1, Payload: make([]byte, 11)},
		nettracefile.Event{Meta: 3, Seq: 3, Thread: 5, Time: 3000002, Payload: make([]byte, 2)},
		nettracefile.Event{Meta: 3, Seq: 9, Thread: 5, Time: 3000003, Payload: make([]byte, 2)})
	a := waits.New()
	a.Read(bytes.NewReader(w.Bytes()))
	a.Finish()
	return a
}

// TestHostileNames: names cannot leave the place they are shown at, and every
// format reports that events were lost.
func TestHostileNames(t *testing.T) {
	a := hostile()
	must.True(t, len(a.Waits) == 1 && a.Counts.Lost == 5 && a.Ended != nil,
		"%d waits, %d lost, %v", len(a.Waits), a.Counts.Lost, a.Ended)
	for _, f := range report.Formats() {
		got := write(t, f.Name, a)
		if f.Name == "pprof" {
			p, err := profile.ParseData([]byte(got))
			expect.True(t, err == nil && p.Comments[0] == "events lost: 5", "%v", err)
			continue
		}
		expect.True(t, !strings.ContainsAny(got, "\x1b\u202e"),
			"%s: control characters of a name are written", f.Name)
		if f.Name == "html" && strings.Contains(got, "alert(1)</script>") {
			t.Error("the page's script can be ended by a name")
		}
		if f.Name == "folded" && strings.Contains(got, "a;b") {
			t.Error("a name divides a folded stack")
		}
		if !strings.Contains(got, "5") || f.Name != "csv" && !strings.Contains(got, "lost") {
			t.Errorf("%s does not say that events were lost", f.Name)
		}
	}
}

func TestFormats(t *testing.T) {
	for path, want := range map[string]string{"a.pb.gz": "pprof", "A.HTML": "html", "a.folded": "folded",
		"a.json": "json", "a.csv": "csv", "a.txt": "text", "a": ""} {
		got, _ := report.ByPath(path)
		expect.True(t, got.Name == want, "%s: %q", path, got.Name)
	}
}

// TestNative: frames that were found from outside stand above the stack in every
// format, those that met managed code in another method in none.
func TestNative(t *testing.T) {
	for name, strange := range map[string]bool{"joined": false, "of another method": true} {
		t.Run(name, func(t *testing.T) {
			f := must.Get(os.Open("../testdata/livestart.nettrace"))(t)
			defer f.Close()
			a := waits.New()
			a.Names.AddImages([]waits.Image{{Start: 0x1000, End: 0x2000, Path: "/lib/libwait.so"}})
			a.OnWait = func(w *waits.Wait) {
				entered, join := uint64(1), uint64(1)
				if strange {
					entered = 2
				}
				w.Native = a.AddNative(&waits.Native{Leaves: []uint64{0x1100, 0x1200},
					Entered: entered, Join: join})
			}
			must.Do(t, a.Read(f))
			a.Finish()
			for _, format := range report.Formats() {
				got := write(t, format.Name, a)
				if format.Name == "pprof" {
					p := must.Get(profile.ParseData([]byte(got)))(t)
					got = p.String()
				}
				has := strings.Contains(got, "libwait.so+0x100") && strings.Contains(got, "libwait.so+0x200")
				expect.True(t, has != strange, "%s has the native frames: %v", format.Name, has)
			}
		})
	}
}

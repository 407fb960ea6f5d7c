package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func written(t *testing.T, write func(io.Writer, *Profile) error, p *Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, write(&b, p))
	return b.Bytes()
}

// goldenForms are the formats with golden files. pprof is compared as text, because its compression
// depends on the library.
var goldenForms = []struct {
	file  string
	write func(io.Writer, *Profile) error
}{
	{"demo.folded", WriteFolded},
	{"demo.json", WriteJSON},
	{"demo.speedscope.json", WriteSpeedscope},
	{"demo.page.json", func(w io.Writer, p *Profile) error { // the rest of the page is TestPageParts's
		var b strings.Builder
		err := WriteHTML(&b, p)
		_, rest, _ := strings.Cut(b.String(), dataTag)
		data, _, _ := strings.Cut(rest, "</script>")
		_, err2 := io.WriteString(w, data)
		return errors.Join(err, err2)
	}},
	{"demo.txt", WriteText},
	{"demo.pprof.txt", func(w io.Writer, p *Profile) error {
		var b bytes.Buffer
		if err := WritePprof(&b, p); err != nil {
			return err
		}
		back, err := profile.Parse(&b)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, back.String())
		return err
	}},
	{"demo.color.txt", func(w io.Writer, p *Profile) error {
		opt := TextOptions{Color: true, Width: 60, MaxLines: 12}
		if err := WriteSummary(w, p, opt); err != nil {
			return err
		}
		return WriteTree(w, p, opt)
	}},
}

func TestGolden(t *testing.T) {
	for _, f := range goldenForms {
		t.Run(f.file, func(t *testing.T) {
			golden.Check(t, "testdata/"+f.file,
				written(t, f.write, handMade()))
		})
	}
}

// CPU time without samples is in every format, and weak times are marked.
func TestAccountedGolden(t *testing.T) {
	for _, f := range goldenForms {
		if f.file == "demo.page.json" {
			continue
		}
		name := strings.Replace(f.file, "demo", "accounted", 1)
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "testdata/"+name,
				written(t, f.write, accounted()))
		})
	}
}

// Events have values of their own in every format that can show them. No format counts them as samples.
func TestEventsGolden(t *testing.T) {
	for _, f := range goldenForms {
		if f.file == "demo.color.txt" || f.file == "demo.page.json" {
			continue
		}
		name := strings.Replace(f.file, "demo", "events", 1)
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "testdata/"+name,
				written(t, f.write, withEvents()))
		})
	}
	golden.Check(t, "testdata/onlyevents.folded", written(t, WriteFolded, eventsOnly()))
	golden.Check(t, "testdata/onlyevents.speedscope.json", written(t, WriteSpeedscope, eventsOnly()))
}

func TestEmptyGolden(t *testing.T) {
	golden.Check(t, "testdata/empty.txt", written(t, WriteText, &Profile{}))
	golden.Check(t, "testdata/empty.json", written(t, WriteJSON, &Profile{}))
	golden.Check(t, "testdata/empty.speedscope.json", written(t, WriteSpeedscope, &Profile{}))
}

// The same profile gives the same bytes, whatever the order of maps.
func TestDeterministic(t *testing.T) {
	for _, f := range Formats() {
		first := written(t, f.Write, large(400, 30))
		for range 5 {
			must.Slices(t, first, written(t, f.Write, large(400, 30)),
				"%s: two writings of one profile differ", f.Name)
		}
	}
}

// tags collects the names of a type's JSON fields, including those of nested types.
func tags(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		tags(t.Elem(), into)
	case reflect.Struct:
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				into[name] = true
			}
			tags(f.Type, into)
		}
	}
}

// docs/json.md names every field of the file.
func TestSchemaIsDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/json.md"))(t)
	all := map[string]bool{}
	tags(reflect.TypeFor[jsonFile](), all)
	must.True(t, len(all) >= 40, "only %d fields", len(all))
	for k := ClockPerf; k < NumClocks; k++ { // values of clock, and of counters
		all[k.String()], all["clock_"+k.String()] = true, true
	}
	for e := NoEvent + 1; e < NumEvents; e++ {
		all[e.String()] = true
	}
	for name := range all {
		expect.True(t, strings.Contains(string(doc), "`"+name+"`"), "docs/json.md does not name %s", name)
	}
}

// The file begins with the same fields as the line of record --json.
func TestOneSchema(t *testing.T) {
	var file, line map[string]json.RawMessage
	b := must.Get(json.Marshal(NewRecording("seedwalk-recording", handMade())))(t)
	must.Do(t, json.Unmarshal(b, &line))
	must.Do(t, json.Unmarshal(written(t, WriteJSON, handMade()), &file))
	delete(line, "format")
	for name, value := range line {
		expect.Equal(t, string(file[name]), string(value),
			"%s: %s in the file, %s in the line", name, file[name], value)
	}
}

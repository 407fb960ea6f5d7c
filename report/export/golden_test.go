package export

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/golden"
)

func written(t *testing.T, write func(io.Writer, *Profile) error, p *Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, p); err != nil {
		t.Fatal(err)
	}
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
		t.Run(f.file, func(t *testing.T) { golden.Check(t, "testdata/"+f.file, written(t, f.write, handMade())) })
	}
}

// Processor time without samples is in every format, and weak times are marked.
func TestAccountedGolden(t *testing.T) {
	for _, f := range goldenForms {
		if f.file == "demo.page.json" {
			continue
		}
		name := strings.Replace(f.file, "demo", "accounted", 1)
		t.Run(name, func(t *testing.T) { golden.Check(t, "testdata/"+name, written(t, f.write, accounted())) })
	}
}

// Events have values of their own in every format that can show them. No format counts them as samples.
func TestEventsGolden(t *testing.T) {
	for _, f := range goldenForms {
		if f.file == "demo.color.txt" || f.file == "demo.page.json" {
			continue
		}
		name := strings.Replace(f.file, "demo", "events", 1)
		t.Run(name, func(t *testing.T) { golden.Check(t, "testdata/"+name, written(t, f.write, withEvents())) })
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
			if !bytes.Equal(first, written(t, f.Write, large(400, 30))) {
				t.Fatalf("%s: two writings of one profile differ", f.Name)
			}
		}
	}
}

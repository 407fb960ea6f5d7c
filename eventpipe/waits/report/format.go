package report

import (
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// Format is a way to write an Analysis.
type Format struct {
	Name, Extension, Description string
	Write                        func(w io.Writer, a *waits.Analysis) error
}

var formats = []Format{
	{"text", ".txt", "tables of the longest waits, of places and of threads",
		func(w io.Writer, a *waits.Analysis) error { return WriteText(w, a, TextOptions{}) }},
	{"html", ".html", "a page with a time line of every thread, in one file, no network", WriteHTML},
	{"pprof", ".pb.gz", "waits/count and delay/nanoseconds for `go tool pprof`", WritePprof},
	{"folded", ".folded", "one line per stack with its nanoseconds, for flamegraph.pl and its kin",
		WriteFolded},
	{"json", ".json", "everything, see the documentation of package waits/report", WriteJSON},
	{"csv", ".csv", "one line per wait, for spreadsheets", WriteCSV},
}

// Formats returns all formats in the order to list them.
func Formats() []Format { return append([]Format(nil), formats...) }

// ByName returns the format with a name. It returns false if no format has it.
func ByName(name string) (Format, bool) {
	for _, f := range formats {
		if strings.EqualFold(f.Name, name) {
			return f, true
		}
	}
	return Format{}, false
}

// ByPath returns the format for the ending of a file's name, false if no format has that ending.
func ByPath(path string) (Format, bool) {
	for _, f := range formats {
		if strings.HasSuffix(strings.ToLower(path), f.Extension) {
			return f, true
		}
	}
	return Format{}, false
}

// clean makes a name safe for one line. Names come from the traced process and may contain
// any byte.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069 {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// names returns the names of a stack, leaf first.
func names(frames []waits.Frame) []string {
	out := make([]string, len(frames))
	for i := range frames {
		out[i] = frameName(&frames[i])
	}
	return out
}

// frameName returns the name of a frame in one line: of a managed method, as its author wrote it.
func frameName(f *waits.Frame) string {
	if f.Managed && f.Named {
		return clean(demangle.EventName(f.Name))
	}
	return clean(f.Name)
}

// stackNames caches the names of stacks.
type stackNames struct {
	a    *waits.Analysis
	memo map[stackAt][]waits.Frame
}

type stackAt struct {
	id   waits.StackID
	when uint64
}

func newNames(a *waits.Analysis) *stackNames {
	return &stackNames{a, map[stackAt][]waits.Frame{}}
}

// of returns the named frames of a stack. when is the time of the wait, because an address can have
// several names if code was replaced. Otherwise, the result is cached without a time.
func (s *stackNames) of(id waits.StackID, when uint64) []waits.Frame {
	k := stackAt{id, 0}
	if s.a.Names.Replaced() {
		k.when = when
	}
	f, ok := s.memo[k]
	if !ok {
		f = s.a.Frames(id, when)
		s.memo[k] = f
	}
	return f
}

func reliable(s waits.State) string {
	switch s {
	case waits.Complete:
		return "yes"
	case waits.Unreliable:
		return "no"
	}
	return "lower-bound"
}

package export

import (
	"io"
	"path/filepath"
	"strings"
)

// Format is one way to write a profile. The zero value is no format.
type Format struct {
	Name        string
	Extensions  []string                            // of file names, longest first, with the dot, lower case
	Description string                              // one line for help texts
	Write       func(w io.Writer, p *Profile) error // nil: written while recording, and not from a profile
}

var formats = []Format{
	{"pprof", []string{".pb.gz", ".pprof", ".pb"},
		"for `go tool pprof` and everything that reads its format", WritePprof},
	{"html", []string{".html", ".htm"}, "a flame graph in one file, for any browser, no network", WriteHTML},
	{"folded", []string{".folded", ".collapsed"},
		"one line per stack with its CPU time (ns), for flamegraph.pl", WriteFolded},
	{"speedscope", []string{".speedscope.json", ".speedscope"},
		"for speedscope.app, one profile per thread", WriteSpeedscope},
	{"firefox", []string{".firefox.json"},
		"for profiler.firefox.com, samples of each thread by time", WriteFirefox},
	{"trace", []string{".trace.json"},
		"for Perfetto: when threads ran and waited, waits, GC pauses", WriteChrome},
	{"otlp", []string{".otlp"}, "OpenTelemetry profiles, as protocol buffers", WriteOTLP},
	{"otlp-json", []string{".otlp.json"}, "OpenTelemetry profiles, as JSON", WriteOTLPJSON},
	{"json", []string{".json"},
		"all data: see docs/json.md", WriteJSON},
	{"text", []string{".txt", ".text"}, "the summary and the tree of the hottest stacks", WriteText},
}

// RecordingFile is the format of recording files. They are written while recording, and not from a
// profile: Write is nil.
var RecordingFile = Format{"recording", []string{".swrec"},
	"all samples with their times, for seedwalk report, diff, and convert", nil}

// Formats returns the formats that a profile can be written in, in the order to list them.
func Formats() []Format { return append([]Format(nil), formats...) }

// ByName returns the format with a name, in any case of letters. It returns false if no format has it.
func ByName(name string) (Format, bool) {
	for _, f := range append(Formats(), RecordingFile) {
		if strings.EqualFold(f.Name, name) {
			return f, true
		}
	}
	return Format{}, false
}

// ByExtension returns the format for the ending of a file's name. If two endings fit
// (".speedscope.json" and ".json"), the longer one wins.
func ByExtension(path string) (Format, bool) {
	base, best, size := strings.ToLower(filepath.Base(path)), Format{}, 0
	for _, f := range append(Formats(), RecordingFile) {
		for _, e := range f.Extensions {
			if strings.HasSuffix(base, e) && len(e) > size {
				best, size = f, len(e)
			}
		}
	}
	return best, size > 0
}

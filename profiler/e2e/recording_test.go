package e2e

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// limitOfCommand is the time limit of a command that normally takes seconds.
const limitOfCommand = 3 * time.Minute

var surviveTime = flag.Duration("survive", usualSurvival,
	"how long the survival tests of the probe run each; TestProbeSurvives 12 s and 8 s if it is not given")

const usualSurvival = 8 * time.Second

// seedwalk runs the tool to its end.
func seedwalk(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, limitOfCommand, nil, append([]string{tool(t)}, args...)...)
}

// seedwalkJSON runs a command of the tool with --json and reads its output into v.
func seedwalkJSON(t *testing.T, v any, command string, args ...string) result {
	t.Helper()
	r := seedwalk(t, append([]string{command, "--json"}, args...)...)
	err := json.Unmarshal([]byte(r.stdout), v)
	must.True(t, err == nil, "exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	return r
}

// recording is a run of seedwalk record, and its output.
type recording struct {
	result
	*jsonProfile
	file    string                    // the profile
	samples []*raw.Sample             // with recordRaw
	names   map[clr.FunctionID]string // with recordRaw
}

// record records a program, or with "--pid PID" in flags a process. Spaces separate the flags.
func record(t *testing.T, flags string, argv ...string) *recording {
	t.Helper()
	return recordBy(t, nil, flags, argv...)
}

// recordBy is record with a command line that runs the tool.
func recordBy(t *testing.T, prefix []string, flags string, argv ...string) *recording {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "out.json")
	args := slices.Concat(prefix, []string{tool(t), "record", "--output", file}, strings.Fields(flags))
	if len(argv) > 0 {
		args = append(append(args, "--"), argv...)
	}
	r := &recording{result: run(t, limitOfCommand+*surviveTime+*soakTime, nil, args...), file: file}
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	p := readJSONProfile(t, file)
	r.jsonProfile = &p
	return r
}

// recordRaw is record with the samples.
func recordRaw(t *testing.T, flags string, argv ...string) *recording {
	t.Helper()
	return recordRawBy(t, nil, flags, argv...)
}

func recordRawBy(t *testing.T, prefix []string, flags string, argv ...string) *recording {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "raw")
	r := recordBy(t, prefix, flags+" --raw "+file, argv...)
	samples, rd := readRaw(t, file, r.stderr)
	r.samples, r.names = samples, rd.Names()
	return r
}

// well fails the test unless the program ended with this exit code and exactly this output.
func (r *recording) well(t *testing.T, code int, stdout string) {
	t.Helper()
	must.True(t, r.code == code && r.stdout == stdout,
		"the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
}

// readRawOf reads the raw samples of a run that ended. On a busy machine a program may end before its
// first sample: then there is no file.
func readRawOf(t *testing.T, file string, r result) ([]*raw.Sample, *raw.Reader) {
	t.Helper()
	must.True(t, r.code != hungCode, "the program hung for %v\n%s", r.took, r.stderr)
	if _, err := os.Stat(file); err != nil {
		t.Logf("no raw samples: the program ended with %d after %v and said %q\n%s",
			r.code, r.took, r.stdout, r.stderr)
		return nil, new(raw.Reader)
	}
	return readRaw(t, file, r.stderr)
}

// readRaw reads a file of raw samples.
func readRaw(t *testing.T, file, stderr string) (samples []*raw.Sample, rd *raw.Reader) {
	t.Helper()
	f, err := os.Open(file)
	must.Equal(t, err, nil, "no raw samples: %s", stderr)
	defer f.Close()
	rd = must.Get(raw.NewReader(f))(t)
	for {
		s, err := rd.Next()
		if err == io.EOF {
			return samples, rd
		}
		must.Do(t, err)
		samples = append(samples, s)
	}
}

// jsonProfile is a profile as record writes it (docs/json.md).
type jsonProfile struct {
	export.Recording
	Threads []struct {
		ID   uint64
		Name string
	}
	Frames []struct {
		Name, Class, Module, Addr, File string
		Line                            int
		Doubtful                        bool
	}
	Stacks     []jsonStack
	Activities []struct {
		Trace, Span string
		Stacks      [][2]int64
	}
	Waits []struct {
		Stack int
		Start time.Time
		NS    int64
	}
}

// jsonStack is one entry of the profile: samples with the same stack, or an event.
type jsonStack struct {
	Thread, Owner        int
	Frames               []int
	Count, Sum           int64
	Wall                 int64   `json:"wall_ns"`
	CPU                  int64   `json:"cpu_ns"`
	CPUCount             float64 `json:"cpu_count"`
	Complete, Open       bool
	Event, Type, Message string
	Gap                  string
}

func readJSONProfile(t *testing.T, path string) (p jsonProfile) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(readFile(t, path)), &p))
	return p
}

// stackNames are a stack's functions, leaf first.
func (p *jsonProfile) stackNames(stack int) (out []string) {
	for _, i := range p.Stacks[stack].Frames {
		out = append(out, p.Frames[i].Name)
	}
	return out
}

// has reports whether a frame has a part of a name.
func (p *jsonProfile) has(name string) bool {
	for i := range p.Frames {
		if strings.Contains(p.Frames[i].Name, name) {
			return true
		}
	}
	return false
}

// whole fails the test unless there are enough samples, and a share of them, in thousandths, is complete.
func (p *jsonProfile) whole(t *testing.T, samples, share int64) {
	t.Helper()
	expect.Figures(t, p.Samples >= samples && p.Complete*1000 >= p.Samples*share,
		"%s: %d samples, want %d; %d complete, want %d in thousand; gaps %v, %v", p.Runtime, p.Samples,
		samples, p.Complete, share, p.Gaps, p.Counters)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

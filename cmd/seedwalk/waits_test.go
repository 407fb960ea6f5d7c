package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const sampleTrace = "../../eventpipe/waits/testdata/livestart.nettrace"

// TestWaitsBadInput: bad input ends in one line with the reason, and exit code 1; the waits read before it
// are shown.
func TestWaitsBadInput(t *testing.T) {
	trace := must.Get(os.ReadFile(sampleTrace))(t)
	path := must.Get(filepath.Abs(sampleTrace))(t)
	write := func(name string, b []byte) string {
		p := filepath.Join(tempdir.New(t), name)
		must.Do(t, os.WriteFile(p, b, 0o644))
		return p
	}
	for _, c := range []struct {
		name, stdout, stderr string
		args                 []string
		code                 int
	}{
		{"whole", "43 waits", "", []string{path}, 0},
		{"flags behind the file", `"seedwalk-waits"`, "", []string{path, "--format", "json"}, 0},
		{"cut in the middle", "waits", "at offset 150000", []string{write("a", trace[:150000])}, 1},
		{"without its end mark", "43 waits", "without its end mark", []string{write("a", trace[:len(trace)-1])}, 1},
		{"two traces", "43 waits", "another trace begins", []string{write("a", append(append([]byte{}, trace...), trace...))}, 1},
		{"garbage behind the end", "43 waits", "bytes follow", []string{write("a", append(append([]byte{}, trace...), 1, 2, 3))}, 1},
		{"empty", "", "empty", []string{write("a", nil)}, 1},
		{"gzip", "", "gzip", []string{write("a", []byte("\x1f\x8b\x08\x00aaaaaaaaa"))}, 1},
		{"netperf without content", "", "without its end mark", []string{write("a", []byte("\x14\x00\x00\x00!FastSerialization.1"))}, 1},
		{"not there", "", "nowhere.nettrace: ", []string{"nowhere.nettrace"}, 3},
		{"a folder", "", "is a directory", []string{tempdir.New(t)}, 3},
		{"nothing named", "", "name a trace", nil, 2},
		{"two named", "", "name a trace", []string{path, "--pid", "5"}, 2},
		{"two files", "", "one file at a time", []string{path, path}, 2},
		{"no such format", "", "no format", []string{"--format", "x", path}, 2},
		{"no such flag", "", "--help", []string{"--wrong"}, 2},
		{"a thread that is no number", "", "--thread x: not a number", []string{"--thread", "x", path}, 2},
		{"live flags for a file", "", "not a file", []string{"--follow", path}, 2},
		{"buffer", "", "--buffer", []string{"--buffer", "0", "--pid", "1"}, 2},
		{"since the end", "no waits", "", []string{"--since", "1h", path}, 0},
		{"until the start", "no waits", "", []string{"--until", "1us", path}, 0},
		{"filtered", "no waits", "", []string{"--min-duration", "1h", path}, 0},
	} {
		stdout, stderr, code, _ := tool(t, append([]string{"waits"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || c.stdout == "" && stdout != "" {
			t.Errorf("%s: exit code %d, want %d\n%s\n%s", c.name, code, c.code, stdout, stderr)
		}
		if n := strings.Count(stderr, "\n"); n > 1 || c.code == 0 && n > 0 {
			t.Errorf("%s: %q is not one line", c.name, stderr)
		}
	}
}

func TestWaitsJSONFile(t *testing.T) {
	path, _ := filepath.Abs(sampleTrace)
	_, stderr, code, dir := tool(t, "waits", "--output", "w.json", "--thread", "27713", "--min-duration", "10ms", path)
	if code != 0 || !strings.Contains(stderr, "wrote w.json") {
		t.Fatalf("%d %s", code, stderr)
	}
	b := must.Get(os.ReadFile(filepath.Join(dir, "w.json")))(t)
	var got struct {
		Waits []struct{ Thread uint64 }
	}
	if err := json.Unmarshal(b, &got); err != nil || len(got.Waits) != 1 || got.Waits[0].Thread != 27713 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWaitsExample compares the example in docs/waits.md with the tool's output.
func TestWaitsExample(t *testing.T) {
	trace := must.Get(filepath.Abs("../../eventpipe/waits/testdata/liveexample.nettrace"))(t)
	stdout, stderr, code, _ := tool(t, "waits", trace, "--min-duration", "100ms")
	if code != 0 || stderr != "" {
		t.Fatalf("%d %s", code, stderr)
	}
	const command = "$ seedwalk waits eventpipe/waits/testdata/liveexample.nettrace --min-duration 100ms"
	b := must.Get(os.ReadFile("../../docs/waits.md"))(t)
	_, shown, ok := strings.Cut(string(b), command+"\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !ok || shown != stdout {
		t.Errorf("docs/waits.md shows\n%s\nprinted is\n%s", shown, stdout)
	}
}

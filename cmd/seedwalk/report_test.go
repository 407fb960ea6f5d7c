package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/diff"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// recorded returns a recording of the fake target, and the folded stacks written with it.
func recorded(t *testing.T) (path string, folded []byte) {
	t.Helper()
	_, errOut, code, dir := tool(t, "record", "--quiet", "--output", "a.swrec,a.folded", "--", self(t))
	must.Equal(t, code, 42, "exit code, %s", errOut)
	folded = must.Get(os.ReadFile(filepath.Join(dir, "a.folded")))(t)
	left, _ := filepath.Glob(filepath.Join(dir, "*.partial"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
	return filepath.Join(dir, "a.swrec"), folded
}

// A report of a recording equals the one that record itself has written.
func TestReport(t *testing.T) {
	path, folded := recorded(t)
	out, errOut, code, _ := tool(t, "report", "--format", "folded", path)
	expect.True(t, code == 0 && out == string(folded) && errOut == "",
		"exit code %d, %q, want %q; %s", code, out, folded, errOut)
	out, _, code, dir := tool(t, "convert", path, "b.folded", "b.html")
	again, err := os.ReadFile(filepath.Join(dir, "b.folded"))
	expect.True(t, code == 0 && out == "" && err == nil && bytes.Equal(again, folded),
		"exit code %d, %q, %v %q", code, out, err, again)
	out, _, code, _ = tool(t, "report", "--tree", path)
	for _, want := range []string{"samples      7 in ",
		" ~100 %  ~100 %        7 M App.Program.Work", "Samples: 7"} {
		expect.True(t, strings.Contains(out, want), "no %q in\n%s", want, out)
	}
	expect.Equal(t, code, 0, "exit code")
}

// The table can be by category, module, or thread.
func TestReportBy(t *testing.T) {
	path, _ := recorded(t)
	for by, want := range map[string]string{"category": " 7 user code\n",
		"module": " ~100 %  ~100 %        7 App\n", "thread": "7 main (5)\n"} {
		out, errOut, code, _ := tool(t, "report", "--by", by, path)
		expect.True(t, code == 0 && strings.Contains(out, "samples "+by+"\n") && strings.Contains(out, want),
			"%s: exit code %d, %s%s", by, code, errOut, out)
	}
	_, errOut, code, _ := tool(t, "report", "--by", "color", path)
	expect.True(t, code == 2 && strings.Contains(errOut, "choose category, module, thread"),
		"exit code %d, %s", code, errOut)
}

// Parts of a recording are chosen by time, thread, and function.
func TestReportPart(t *testing.T) {
	path, _ := recorded(t)
	for _, c := range []struct {
		flags   string
		samples int64
	}{
		{"", 7}, {"--since 0.035", 3}, {"--until 0.025", 4},
		{"--since 0.015 --until 0.035", 3}, {"--since 9", 0},
		{"--thread main", 7}, {"--thread 5", 7}, {"--thread 6", 0}, {"--focus Work$", 7},
		{"--focus Idle", 0}, {"--metric wall", 7},
	} {
		out, errOut, code, _ := tool(t,
			append(append([]string{"report", "--json"}, strings.Fields(c.flags)...), path)...)
		var s export.Recording
		hint := strings.Contains(errOut, "no samples in the selection (") &&
			strings.Contains(errOut, `these threads: "main"`)
		err := json.Unmarshal([]byte(out), &s)
		expect.True(t, err == nil && code == 0 && s.Samples == c.samples && hint == (c.samples == 0),
			"%s: %v, exit code %d, %d samples, want %d; %s", c.flags, err, code, s.Samples, c.samples, errOut)
	}
}

// An empty selection is reported once, and no notes about the whole recording follow.
func TestReportEmptySelection(t *testing.T) {
	path, _ := recorded(t)
	out, errOut, code, _ := tool(t, "report", "--tree", "--thread", "none", path)
	expect.True(t, code == 0 && out == "" && strings.Count(errOut, "no samples") == 1,
		"exit code %d, stdout %q, stderr %q", code, out, errOut)
}

// A truncated recording is shown up to its end, with the offset. Other files are refused.
func TestReportBadInput(t *testing.T) {
	path, _ := recorded(t)
	b := must.Get(os.ReadFile(path))(t)
	dir := filepath.Dir(path)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte("a profile"))
	z.Close()
	file := func(name string, b []byte) string {
		os.WriteFile(filepath.Join(dir, name), b, 0o600)
		return filepath.Join(dir, name)
	}
	for _, c := range []struct {
		name, path, want string
		code             int
	}{
		{"cut", file("cut", b[:len(b)-3]), "damaged at offset ", 1},
		{"text", file("text", []byte("hello")),
			"neither a seedwalk recording (.swrec) nor a trace (.nettrace); seedwalk record", 3},
		{"other gzip", file("app.pb.gz", zipped.Bytes()), "neither a seedwalk recording (.swrec) nor", 3},
		{"absent", filepath.Join(dir, "absent"), "absent", 3},
		{"newer", file("newer", append([]byte("SWREC\r\n\x09"), b[8:]...)), "version 9", 3},
	} {
		for _, command := range [][]string{{"report", c.path}, {"convert", c.path, "x.folded"}} {
			if _, errOut, code, _ := tool(t, command...); code != c.code ||
				!strings.Contains(errOut, c.want) {
				t.Errorf("%s %s: exit code %d, %q", command[0], c.name, code, errOut)
			}
		}
	}
	_, errOut, code, _ := tool(t, "report", "--output", "b.swrec", path)
	expect.True(t, code == 2 && strings.Contains(errOut, "seedwalk record only"),
		"a recording of a recording: exit code %d, %q", code, errOut)
	_, errOut, code, _ = tool(t, "report", "--metric", "heat", path)
	expect.True(t, code == 2 && strings.Contains(errOut, "it has samples, wall, cpu"),
		"an unknown metric: exit code %d, %q", code, errOut)
}

// Two recordings of one program show no difference, and the exit code is that of no difference.
func TestDiff(t *testing.T) {
	a, _ := recorded(t)
	b, _ := recorded(t)
	out, errOut, code, _ := tool(t, "diff", a, b)
	expect.True(t, code == 0 && errOut == "" && strings.Contains(out, "no difference beyond noise"),
		"exit code %d, %s%s", code, out, errOut)
	out, _, code, _ = tool(t, "diff", "--json", a, b)
	var d diff.Document
	if err := json.Unmarshal([]byte(out),
		&d); err != nil || code != 0 || d.Schema != "seedwalk-diff" || d.Differs || len(d.Rows) != 2 ||
		d.Before.Count != 7 {
		t.Errorf("%v, exit code %d, %+v", err, code, d)
	}
	out, errOut, code, dir := tool(t, "diff", a, b, "-o", "d.html")
	page, err := os.ReadFile(filepath.Join(dir, "d.html"))
	expect.True(t, err == nil && out == "" && code == 0 && strings.Contains(errOut, "wrote d.html") &&
		bytes.Contains(page, []byte(`"diff":{"split":`)), "%v, exit code %d, %s%s", err, code, out, errOut)
	_, errOut, code, _ = tool(t, "diff", a, b, "-o", "d.folded")
	expect.True(t, code == 2 && strings.Contains(errOut, "must end in .html"),
		"a page of another format: exit code %d, %s", code, errOut)
	_, _, code, _ = tool(t, "diff", a)
	expect.True(t, code == 2, "one recording: exit code %d", code)
	_, _, code, _ = tool(t, "diff", a, a+"x")
	expect.True(t, code == 3, "an absent recording: exit code %d", code)
	data := must.Get(os.ReadFile(b))(t)
	must.Do(t, os.WriteFile(b, data[:len(data)-3], 0o644))
	_, errOut, code, _ = tool(t, "diff", a, b)
	expect.True(t, code == 3 && strings.Contains(errOut, "damaged at offset "),
		"a damaged recording: exit code %d, %s", code, errOut)
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// TestTraceCommands: the output of report and convert for traces, and their exit codes.
func TestTraceCommands(t *testing.T) {
	dir := tempdir.New(t)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, b, 0o600))
		return path
	}
	sampled := func(pid uint32) []byte {
		w := nettracefile.New(nettracefile.Options{PID: pid}).Metadata(nettracefile.Meta{ID: 1,
			Provider: clrevent.Sampler})
		w.Stacks(1, []uint64{0x1010})
		for i := range uint32(5) {
			w.Events(nettracefile.Event{Meta: 1, Capture: 9, Thread: 5, Seq: i + 1, Stack: 1,
				Time: uint64(i+1) * 1e6, Payload: []byte{2, 0, 0, 0}})
		}
		return w.End().Bytes()
	}
	one, other := write("one.nettrace", sampled(1)), write("other.nettrace", sampled(2))
	waited := newDamaged(nettracefile.Options{PID: 1})
	waited.start(1, 1, 1).stop(1, 2, 5)
	waits := write("waits.nettrace", waited.End().Bytes())
	bare := write("bare.nettrace", nettracefile.New(nettracefile.Options{PID: 1}).End().Bytes())
	cut, page := write("cut.nettrace", sampled(1)[:400]), filepath.Join(dir, "x.html")
	for _, c := range []struct {
		args string
		code int
		want string // in what it prints, or in the file x.html
	}{
		{"report " + one, cli.ExitOK, "5 samples"},
		{"report " + one + " --top 1", cli.ExitOK, "unknown code at 0x1010"},
		{"report " + one + " " + waits, cli.ExitOK, "waits        1"},
		{"report " + waits, cli.ExitOK,
			"no samples in this trace: there were none, or it was recorded without the provider " +
				clrevent.Sampler},
		{"report --metric wait " + waits, cli.ExitOK, "Wait time: 5.00 ms"},
		{"report --metric exceptions " + waits, cli.ExitWrong, "no exceptions in this trace"},
		{"report " + bare, cli.ExitWrong, "no samples in this trace"},
		{"report --metric nonsense " + waits, cli.ExitUsage, "has no metric"},
		{"report " + cut, cli.ExitWrong, "at offset"},
		{"report " + one + " " + other, cli.ExitUnreadable, "another process"},
		{"report " + one + " " + page, cli.ExitUnreadable, "x.html"},
		{"convert " + one + " -o " + page, cli.ExitOK, "unknown code at"},
		{"convert " + one + " " + waits + " " + page, cli.ExitOK, "Wait time"},
		{"convert " + one, cli.ExitUsage, "at least one output"},
	} {
		os.Remove(page)
		out, errOut, code, _ := tool(t, strings.Fields(c.args)...)
		text, _ := os.ReadFile(page)
		if all := out + errOut + string(text); code != c.code || !strings.Contains(all, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q in\n%s%s", c.args, code, c.code, c.want, out, errOut)
		}
	}
}

package record

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/record/output"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestRefusals(t *testing.T) {
	dir := tempdir.New(t)
	noExec := filepath.Join(dir, "data")
	must.Do(t, os.WriteFile(noExec, []byte("x"), 0o644))
	cases := []struct {
		name   string
		change func(*options.Options)
		code   int
		want   string
	}{
		{"no command", func(o *options.Options) { o.Command = nil }, 125, "no command"},
		{"rate too high", func(o *options.Options) { o.Rate = 1e6 }, 125, "out of range"},
		{"rate negative", func(o *options.Options) { o.Rate = -1 }, 125, "out of range"},
		{"stack too large", func(o *options.Options) { o.StackBytes = options.MaxStackBytes + 1 }, 125,
			"out of range"},
		{"stack negative", func(o *options.Options) { o.StackBytes = -1 }, 125, "out of range"},
		{"command not found", func(o *options.Options) { o.Command = []string{"no-such-command"} }, 127,
			"not found"},
		{"path not found", func(o *options.Options) { o.Command = []string{dir + "/none"} }, 127,
			"not found"},
		{"not executable", func(o *options.Options) { o.Command = []string{noExec} }, 126, notExecutable},
		{"no profiler", func(o *options.Options) { o.Profiler = dir + "/none.so" }, 125, "cannot be read"},
		{"output in no directory",
			func(o *options.Options) { o.Outputs = []options.Output{{Path: dir + "/none/x", Format: plain}} },
			125, output.MakeFolder + filepath.Join(dir, "none")},
		{"output is a directory",
			func(o *options.Options) { o.Outputs = []options.Output{{Path: dir, Format: plain}} }, 125,
			"is a directory"},
		{"raw in no directory", func(o *options.Options) { o.Raw = dir + "/none/raw" }, 125,
			output.MakeFolder},
		{"ourselves", func(o *options.Options) {
			o.Env = append(o.Env, "CORECLR_ENABLE_PROFILING=1",
				"CORECLR_PROFILER="+strings.ToLower(options.CLSID))
		}, 125, "already recording"},
		{"ourselves beside another", func(o *options.Options) {
			o.Env = append(o.Env, "CORECLR_ENABLE_NOTIFICATION_PROFILERS=1",
				"CORECLR_NOTIFICATION_PROFILERS=/a.so={846F5F1C-F9AE-4B07-969E-05C26BC060D8};/p.so="+
					strings.ToLower(options.CLSID))
		}, 125, "already recording"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			opt, _ := fakeRun(t, "silent")
			c.change(&opt)
			_, err := Run(opt)
			var r *options.Refusal
			expect.True(t, errors.As(err, &r) && r.Code == c.code && strings.Contains(r.Error(), c.want) &&
				!strings.Contains(r.Error(), "\n"),
				"got %v, want code %d and %q in one line", err, c.code, c.want)
		})
	}
}

func TestStdoutOutput(t *testing.T) {
	r, w, _ := os.Pipe()
	opt, _ := fakeRun(t, "exit")
	opt.Stdout, opt.Outputs = w, []options.Output{{Path: "-", Format: plain}}
	mustRun(t, opt)
	w.Close()
	b, _ := io.ReadAll(r)
	expect.True(t, strings.Count(string(b), "x10") == 1, "got %q", b)
}

package record

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A recording without samples says why in one line, and is a failure for scripts that
// want it to be one.
func TestEmpty(t *testing.T) {
	for _, c := range []struct {
		what, want string
		failEmpty  bool
		code       int
	}{
		{"empty", "no samples: the profiler connected and sent none", false, 0},
		{"empty", "no samples: the profiler connected and sent none", true, ExitRefused},
		{"empty with a note", "no samples: the runtime has no threads yet", true, ExitRefused},
		{"silent", "no samples: the profiler never connected", true, 5}, // the command's own stands
		{"echo", "", true, 0},
	} {
		opt, said := options(t, c.what)
		opt.FailEmpty = c.failEmpty
		res := mustRun(t, opt)
		if res.Profile != nil && res.Profile.Stats.Empty != said.String() {
			t.Errorf("%s: the outputs say %q, the terminal %q", c.what, res.Profile.Stats.Empty, said)
		}
		if res.ExitCode != c.code || !strings.HasPrefix(said.String(), c.want) || strings.Contains(said.String(), "\n") || (c.want == "") != (said.String() == "") {
			t.Errorf("%s: exit code %d, said %q", c.what, res.ExitCode, said)
		}
	}
}

// Where only events were asked for and none happened, that is said.
func TestNoEvents(t *testing.T) {
	p := newProcess(7, "app")
	r := &run{opt: &Options{Events: "locks"}, srv: &server{processes: []*process{p}}}
	if got := r.empty(); !strings.HasPrefix(got, "no events: none of what --events locks asked for") {
		t.Errorf("%q", got)
	}
	p.take(&wire.Event{Kind: wire.EventWait})
	if got := r.empty(); got != "" {
		t.Errorf("with an event: %q", got)
	}
}

// Where the profiler itself said why it does not work, nothing is guessed.
func TestRefusedToldWhy(t *testing.T) {
	opt, said := options(t, "refusing")
	if res := mustRun(t, opt); res.ExitCode != 5 || said.String() != "" {
		t.Errorf("exit code %d, said %q", res.ExitCode, said)
	}
	if left, _ := os.ReadDir(opt.SocketDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What a killed tool left goes with the next run; what a living one has, what is not
// known and what others put there stays.
func TestSweep(t *testing.T) {
	parent := tempdir.New(t)
	folder := func(name string, files ...string) string {
		dir := filepath.Join(parent, name)
		os.Mkdir(dir, 0o700)
		for _, f := range files {
			os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600)
		}
		return dir
	}
	gone := []string{folder("seedwalk-run-1", lockName, socketName), folder("seedwalk-run-2", lockName, refusedName), folder("seedwalk-run-3", lockName)}
	kept := []string{folder("seedwalk-run-4", socketName), folder("seedwalk-other", lockName, socketName), folder("seedwalk-run-5", lockName, "somebody's")}
	elsewhere := folder("elsewhere", lockName, socketName)
	if runtime.GOOS != "windows" {
		os.WriteFile(filepath.Join(folder("seedwalk-run-6"), lockName), nil, 0o600) // being made
		kept = append(kept, filepath.Join(parent, "seedwalk-run-6"))
		os.Symlink(elsewhere, filepath.Join(parent, "seedwalk-run-7"))
	}
	living, err := newPrivate(parent)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newPrivate(parent) // sweeps again
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range gone {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	for _, dir := range append(kept, elsewhere, filepath.Join(elsewhere, lockName), living.dir, living.path(lockName)) {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
	living.close()
	second.close()
	if _, err := os.Lstat(living.dir); err == nil {
		t.Errorf("%s is still there", living.dir)
	}
}

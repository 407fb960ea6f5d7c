package record

import (
	"os"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/record/inflow"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/wire"
)

// A recording without samples reports the reason in one line, and fails if FailEmpty is set.
func TestEmpty(t *testing.T) {
	for _, c := range []struct {
		what, want string
		failEmpty  bool
		code       int
	}{
		{"empty", "no samples: the profiler connected and sent none", false, 0},
		{"empty", "no samples: the profiler connected and sent none", true, options.ExitRefused},
		{"empty with a note", "no samples: the runtime has no threads yet", true, options.ExitRefused},
		{"silent", "no samples: no .NET runtime loaded seedwalk's library", true, 5},
		{"echo", "", true, 0},
	} {
		opt, said := fakeRun(t, c.what)
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

// If only events were requested and none happened, the line reports that.
func TestNoEvents(t *testing.T) {
	p := inflow.New(7, "app")
	r := &run{opt: &options.Options{Events: "locks"}, srv: &server{processes: []*inflow.Process{p}}}
	if got := r.empty(); !strings.HasPrefix(got, "no events: none of what --events locks asked for") {
		t.Errorf("%q", got)
	}
	p.Receive(&wire.Event{Kind: wire.EventWait})
	if got := r.empty(); got != "" {
		t.Errorf("with an event: %q", got)
	}
}

// If only waits were requested and the runtime cannot report them, the line reports that, and the exit
// code of record --pid is not 0.
func TestUnseenWaits(t *testing.T) {
	for _, c := range []struct {
		name, runtime string
		events        options.Events
		pid, code     int
		want          string
	}{
		{"waits", ".NET 8.0.6", "waits", 7, options.ExitRefused, "waits of process 7 are unknown: .NET 8 "},
		{"a command has its own code", ".NET 8.0.6", "waits", 0, 0, "waits of process 7 are unknown: .NET 8 "},
		{"locks too", ".NET 8.0.6", "waits,locks", 7, 0, "no events: "},
		{"reported", ".NET 9.0.5", "waits", 7, 0, "no events: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := inflow.New(7, "app")
			p.Receive(&wire.Hello{PID: 7, Runtime: c.runtime})
			r := &run{opt: &options.Options{Events: c.events, PID: c.pid}, srv: &server{processes: []*inflow.Process{p}}}
			if got, code := r.empty(), r.finalCode(); !strings.HasPrefix(got, c.want) || code != c.code {
				t.Errorf("%q, exit code %d", got, code)
			}
		})
	}
}

// If the profiler itself reported why it does not work, the tool does not guess.
func TestRefusedToldWhy(t *testing.T) {
	opt, said := fakeRun(t, "refusing")
	if res := mustRun(t, opt); res.ExitCode != 5 || said.String() != "" {
		t.Errorf("exit code %d, said %q", res.ExitCode, said)
	}
	if left, _ := os.ReadDir(opt.SocketDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

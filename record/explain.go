package record

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/seedwalk/seedwalk/export"
)

// exitNote says how the command ended, if that is worth saying.
func exitNote(code int) string {
	switch {
	case code == 0:
		return ""
	case code > ExitSignal && code < ExitSignal+65:
		return fmt.Sprintf("the command was ended by signal %d (%s)", code-ExitSignal, syscall.Signal(code-ExitSignal))
	}
	return fmt.Sprintf("the command ended with exit code %d", code)
}

// neverConnected says in one line why no profiler may have connected: what can
// be seen to be the reason, or else what it mostly is.
func (o *Options) neverConnected() string {
	const head = "no samples: the profiler never connected; "
	if lines := Blockers(o.Env); len(lines) > 0 {
		return head + strings.Join(lines, "; ")
	}
	if why := o.wrongMachine(); why != "" {
		return head + why
	}
	return head + "likely reasons: the command starts no .NET process, its runtime is older than .NET Core 3.0, " +
		"it clears or changes its environment (CORECLR_PROFILER, DOTNET_EnableDiagnostics=0), or the library failed to load: try `seedwalk doctor -- " +
		o.Command[0] + "`"
}

// wrongMachine compares the command's architecture with the profiler's.
func (o *Options) wrongMachine() string {
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		return ""
	}
	a, errA := machine(path)
	b, errB := machine(o.Profiler)
	if errB != nil {
		return fmt.Sprintf("%s is no ELF library (%v)", o.Profiler, errB)
	}
	if errA == nil && a != b {
		return fmt.Sprintf("%s is for %v and the profiler library for %v", path, a, b)
	}
	return ""
}

func machine(path string) (elf.Machine, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Machine, nil
}

// publish keeps what was written and, the first time with this outcome, tells
// where an output had to go instead.
func (r *run) publish(p *export.Profile, written []Written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range written {
		if w.Err == nil || r.told[w.Output.Path] {
			continue
		}
		r.told[w.Output.Path] = true
		if w.Path != "" {
			r.opt.Say(fmt.Sprintf("cannot write %s: %s; the result is in %s", w.Output.Path, reason(w.Err), w.Path))
		} else {
			r.opt.Say(fmt.Sprintf("cannot write %s: %s; nor anywhere else: the result is lost", w.Output.Path, reason(w.Err)))
		}
	}
	r.result.Profile = p
	r.result.Written = written
	r.result.PIDs = nil
	for _, q := range r.srv.all() {
		r.result.PIDs = append(r.result.PIDs, q.pid)
	}
}

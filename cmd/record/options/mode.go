package options

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/startup"
)

// Mode is a way to take samples.
type Mode string

const (
	// ModeProbe copies stacks by a small probe in the target and walks them from
	// outside: the runtime is never suspended.
	ModeProbe Mode = "probe"
	// ModeSnapshot suspends the runtime, or on Windows a thread, and asks the CLR.
	// On Linux samples then fall on safe points only.
	ModeSnapshot Mode = "snapshot"
	// ModeOutside has the kernel copy the stacks of running threads, stops those that wait as
	// a debugger does, and walks all from outside: of any native program.
	ModeOutside Mode = "outside"
)

// ChooseMode settles the mode and checks the library that it needs.
func (o *Options) ChooseMode() *Refusal {
	if o.Outside {
		o.Mode = ModeOutside
		return o.checkEvents()
	}
	switch o.Mode {
	case ModeSnapshot:
	case ModeProbe, "":
		why := o.noProbe()
		if why == "" && o.Mode == "" {
			why = o.unprovenRuntime()
		}
		if why == "" {
			o.Mode = ModeProbe
			break
		}
		if o.Mode == ModeProbe {
			return &Refusal{What: why, Where: "--mode probe", Remedy: "use --mode snapshot", Code: ExitRefused}
		}
		o.Mode, o.modeWhy = ModeSnapshot, why
	default:
		return &Refusal{What: "no such mode", Where: "--mode " + string(o.Mode), Remedy: "choose probe or snapshot", Code: ExitUsage}
	}
	if r := o.checkEvents(); r != nil {
		return r
	}
	if o.Mode == ModeProbe && (o.Probe == "" || !NeedsLibrary) {
		return nil // unpack
	}
	return o.checkProfiler()
}

// Unpack puts the probe that the tool carries where the target can load it, unless
// there is one already.
func (o *Options) Unpack(dir string) error {
	if !NeedsLibrary {
		return o.share()
	}
	if o.Mode != ModeProbe || o.Probe != "" {
		return nil
	}
	path := dir
	if o.Root == "" { // through which a link leads elsewhere
		var err error
		if path, err = filepath.EvalSymlinks(dir); err != nil {
			return err
		}
	}
	file := filepath.Join(path, probe.LibraryName)
	o.Instead, o.Probe = Absolute(o.Profiler), strings.TrimPrefix(file, o.Root)
	o.Profiler = o.Probe
	return os.WriteFile(file, probe.Library(), 0o755)
}

// noProbe reports why there can be no probe, "" if there can.
func (o *Options) noProbe() string {
	if !hasProbe {
		return "there is no probe for this system"
	}
	return ""
}

// Engine is the configuration of an engine.
func (o *Options) Engine() sampler.Config {
	w, _ := o.Events.Parse()
	return sampler.Config{RateHz: o.Rate, Raw: o.Raw, Probe: o.Probe, Version: RuntimeName, NoCPU: !w.CPU, NoWall: !w.Wall, Clock: o.Clock,
		Events: w.Events, WaitMin: o.WaitMin, WallEvery: o.WallEvery, Async: o.Async, Start: new(startup.Starting), File: o.shared}
}

// Taken are the options as they came out: where no process was sampled by a probe, since
// why, the mode is the other one.
func (o *Options) Taken(why string, probed bool) *Options {
	out := *o
	if out.Mode == ModeProbe && why != "" && !probed {
		out.Mode, out.modeWhy = ModeSnapshot, why
	}
	return &out
}

// Way says for people what the mode means.
func (o *Options) Way() string {
	switch {
	case o.Mode == ModeProbe && !NeedsLibrary:
		return "each thread is stopped for as long as its stack is copied, and walked from outside; nothing of seedwalk is in the process, the runtime is never suspended"
	case o.Mode == ModeOutside:
		return "the kernel copies the stacks of running threads (perf_event); a thread that waits is stopped (ptrace) for as long as its stack is copied; nothing of seedwalk is in the process"
	case o.Mode == ModeProbe:
		return "stacks are copied and walked from outside; the runtime is never suspended"
	case o.modeWhy != "":
		return suspends + Bias + "; " + o.modeWhy
	}
	return suspends + Bias
}

// RuntimeName is a runtime's version as people write it, of its file.
func RuntimeName(path string) string {
	v := program.RuntimeVersion(path)
	if v == "" {
		return ""
	}
	return ".NET " + v
}

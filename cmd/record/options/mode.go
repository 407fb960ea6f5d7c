package options

import (
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/startup"
)

// Mode is a way to take samples.
type Mode string

const (
	// ModeProbe copies stacks and walks them from outside. The runtime is never suspended. On Linux, a small
	// library in the target copies the stacks. On Windows, seedwalk suspends one thread at a time.
	ModeProbe Mode = export.WayProbe
	// ModeSnapshot suspends the runtime, or on Windows one thread, and gets the stack from
	// the CLR. On Linux, all samples are at safe points.
	ModeSnapshot Mode = export.WaySnapshot
	// ModeOutside records any native program. The kernel copies the stacks of running threads.
	// Waiting threads are stopped as a debugger does. Stacks are walked from outside.
	ModeOutside Mode = "outside"
)

// ChooseMode chooses the mode, and checks the events and the library that the mode needs.
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
			return Refuse("--mode probe", why, "use --mode snapshot")
		}
		o.Mode, o.modeWhy = ModeSnapshot, why
	default:
		return &Refusal{What: "no such mode", Where: "--mode " + string(o.Mode),
			Remedy: "choose probe or snapshot", Code: ExitUsage}
	}
	if r := o.checkEvents(); r != nil {
		return r
	}
	if o.Mode == ModeProbe && (o.Probe == "" || !NeedsLibrary) {
		return nil // unpack
	}
	return o.checkProfiler()
}

// Folder is a recording's folder, where the target finds the probe.
type Folder interface {
	Named(name string) string // the path of one of its files
	Create(name string, content []byte) error
}

// Unpack writes the embedded probe into the folder, from where the target loads it. It writes nothing if
// another probe is chosen or the mode uses none. On Windows x86-64, it makes the memory for events instead,
// if events are wanted.
func (o *Options) Unpack(folder Folder) error {
	if !NeedsLibrary {
		return o.share()
	}
	if o.Mode != ModeProbe || o.Probe != "" {
		return nil
	}
	if err := folder.Create(probe.LibraryName, probe.Library()); err != nil {
		return err
	}
	file := folder.Named(probe.LibraryName)
	o.Instead, o.Probe = Absolute(o.Profiler), o.Inside(file)
	if o.Tmp == nil { // in another root, a link would lead to another file
		var err error
		if o.Probe, err = filepath.EvalSymlinks(file); err != nil {
			return err
		}
	}
	o.Profiler = o.Probe
	return nil
}

// Inside returns a path of a recording's folder as the target sees it.
func (o *Options) Inside(path string) string {
	if o.Tmp == nil {
		return path
	}
	return "/tmp" + strings.TrimPrefix(path, o.SocketDir)
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
	return sampler.Config{RateHz: o.Rate, Raw: o.Raw, Probe: o.Probe, Version: RuntimeName, NoCPU: !w.CPU,
		NoWall: !w.Wall, Clock: o.Clock,
		Events: w.Events, WaitMin: o.WaitMin, WallEvery: o.WallEvery, Async: o.Async,
		Start: new(startup.Starting), File: o.shared}
}

// Taken returns the options with the mode that was used. This is ModeSnapshot, with the reason why, if the
// probe was chosen, why is set, and no process was probed.
func (o *Options) Taken(why string, probed bool) *Options {
	out := *o
	if out.Mode == ModeProbe && why != "" && !probed {
		out.Mode, out.modeWhy = ModeSnapshot, why
	}
	return &out
}

// stops describes to users how samples are taken without a library in the target.
const stops = "each thread is stopped while its stack is copied, and walked from outside"

// Way describes the mode for users.
func (o *Options) Way() string {
	switch {
	case o.Mode == ModeProbe && !NeedsLibrary && o.section != "":
		return stops + "; a library in the process copies the runtime's events, the runtime is never suspended"
	case o.Mode == ModeProbe && !NeedsLibrary:
		return stops + "; nothing of seedwalk is in the process, the runtime is never suspended"
	case o.Mode == ModeOutside:
		return "the kernel copies the stacks of running threads (perf_event); a thread that waits is stopped (ptrace) while its stack is copied; nothing of seedwalk is in the process"
	case o.Mode == ModeProbe:
		return "stacks are copied and walked from outside; the runtime is never suspended"
	case o.modeWhy != "":
		return suspends + Bias + "; " + o.modeWhy
	}
	return suspends + Bias
}

// RuntimeName returns the version of the runtime in a file, such as ".NET 9.0.5"; "" if it is unknown.
func RuntimeName(path string) string {
	v := program.RuntimeVersion(path)
	if v == "" {
		return ""
	}
	return ".NET " + v
}

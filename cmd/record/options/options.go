// Package options describes a recording: the command, the way of sampling, the events,
// and the environment of the command. A Refusal is the reason why a recording cannot begin.
//
// Sources: the CLR's environment variables for profilers are those of
// dotnet/runtime docs/design/coreclr/profiling and src/coreclr/inc/clrconfignames.h;
// exit codes 125, 126, 127 and 128+n follow the POSIX shell and env(1).
//
// Glossary. The mode is the way of sampling. A blocker is a variable that keeps the CLR from
// loading a profiler.
//
// Strategy. Options are checked and completed before anything is started. Another profiler in
// the environment stays the main one, and ours runs beside it.
//
// Known gaps: the runtime of a command is known on Windows only from files beside it.
package options

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

// Exit codes beside the command's own.
const (
	ExitUsage     = 2   // an option has a value that is not possible
	ExitRefused   = 125 // seedwalk itself could not begin, or could not keep the result anywhere
	ExitCannotRun = 126 // the command was found but could not be started
	ExitNotFound  = 127 // the command was not found
	ExitSignal    = 128 // plus the number of the signal that ended the command
)

// Options say what to run and where results go. Command or PID must be given. Without Outputs, no file is
// written: Result.Profile has the profile.
type Options struct {
	Command    []string
	PID        int           // record this running process in place of a command
	Outside    bool          // with PID: ModeOutside
	Env        []string      // of the command, before ours; nil = os.Environ()
	Rate       float64       // samples per second and thread, 0 = DefaultRate; MinRate to MaxRate
	Async      bool          // samples have async callers: the methods that wait for the running one
	Inlines    bool          // the command's runtime keeps which methods were inlined
	WallEvery  time.Duration // shortest time between two samples of a waiting thread; 0: one period
	Duration   time.Duration // record this long from when samples can come, 0 = until the command ends
	Relay      func()        // with PID: keep no samples; called when recordings of Part can begin
	Part       Part          // with PID: record a part of the time of a Relay's recording
	Outputs    []Output
	Raw        string        // also dump the profiler's stream here (debugging)
	PIDFile    string        // the command's process id is written here while it runs
	Mode       Mode          // how samples are taken; "" = the best possible
	Clock      sampler.Clock // decides when a running thread is sampled; "" = the best that works
	Events     Events        // what is recorded; events of the runtime need ModeProbe
	WaitMin    time.Duration // waits and locks shorter than this are counted only
	Probe      string        // path of libseedwalk_probe.so, "" = the embedded one
	Profiler   string        // path of libseedwalk_profiler.so, for ModeSnapshot
	KeepProbe  bool          // keep the frames in which a thread waits for the sampler's own suspension
	StackBytes int           // stack copied per sample, to MaxStackBytes; 0 = the profiler's default
	Stdin      *os.File
	Stdout     *os.File
	Stderr     *os.File
	Grace      time.Duration         // after INT, how long to wait for the command before settling; 0 = 3 s
	Progress   func(Progress)        // about four times a second, and at the end; may be nil
	Live       func(*export.Profile) // gets the profile so far, from the goroutine of Run; may be nil
	LiveEvery  time.Duration         // time between two calls of Live
	Stop       <-chan struct{}       // ends the recording when it is closed; nil = never
	Say        func(line string)     // gets messages for the user; nil = they are dropped
	Namer      Namer                 // such as symbol.NewResolver(); nil: native names are module+0xoffset
	SocketDir  string                // where the private directory is made; "" = os.TempDir()
	FailEmpty  bool                  // ExitRefused instead of 0 if there is no sample

	User    int            // owner of the process, if it is another user; 0 = our user
	Tmp     *os.File       // the /tmp of a process with another root, as SocketDir; nil = it has our root
	Reused  bool           // an earlier recording has loaded the probe
	shared  sampler.Shared // Windows: shared with the process whose events are recorded; nil if none are
	section string         // name of shared
	Instead string         // library for processes that cannot be sampled by the probe
	modeWhy string         // why Mode is not the preferred one
}

// Part is a part of the time, not set if Until is zero.
type Part struct{ From, Until time.Time }

// Set reports whether there is a part.
func (p *Part) Set() bool { return !p.Until.IsZero() }

// OfAgent reports whether the recording is one of several of a process, which their caller ends.
func (o *Options) OfAgent() bool { return o.Relay != nil || o.Part.Set() }

// Rates, samples per second.
const (
	DefaultRate = 99
	MinRate     = 0.1
	MaxRate     = 10000
)

// MaxStackBytes bounds Options.StackBytes: the program gives that much memory, on
// Linux for each of the threads of a round, and no thread's stack is as large.
const MaxStackBytes = 1 << 28

// Output is one file to write. Path "-" is the standard output; the command's own
// then goes to the standard error, so that the two do not mix.
type Output struct {
	Path   string
	Format Format
}

// Format writes a profile.
type Format = export.Format

// Progress is the state of a running recording.
type Progress struct {
	Elapsed   time.Duration // since samples can come; 0 before
	Samples   int64
	Complete  int64  // samples without a gap
	Events    int64  // of the runtime
	Threads   int    // seen in samples
	Processes int    // that have connected
	Stage     string // what the recording does, for display
}

// Written is where an output was written.
type Written struct {
	Output Output
	Path   string // where it is; differs from Output.Path after a fallback, "" if nowhere
	Err    error  // why it is not at Output.Path
}

// Result is the result of a recording.
type Result struct {
	ExitCode int // for our own exit: the command's, or one of the Exit codes
	Profile  *export.Profile
	Written  []Written
	PIDs     []int  // processes that connected, in order
	Farewell string // why the first process's samples ended, "" if unknown
}

// Refusal is the reason, in one line, why a recording cannot begin.
type Refusal struct {
	What   string // the obstacle
	Where  string // the file, variable or argument
	Remedy string
	Code   int   // exit code
	Err    error // of a file that cannot be written; nil: it is something else
}

// Refuse returns a Refusal with ExitRefused.
func Refuse(where, what, remedy string) *Refusal {
	return &Refusal{What: what, Where: where, Remedy: remedy, Code: ExitRefused}
}

// Unwrap returns Err.
func (r *Refusal) Unwrap() error { return r.Err }

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s; %s", r.Where, r.What, r.Remedy)
}

// Namer names native code, after sampling.
type Namer = collect.Namer

// defaultGrace is how long a command may take to end after the first INT
// before the result is written without waiting for it.
const defaultGrace = 3 * time.Second

// Defaults replaces zero values by the defaults. record.Run calls it.
func (o *Options) Defaults() {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.SocketDir == "" {
		o.SocketDir = os.TempDir()
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
}

// checkProfiler checks that the needed library exists, and makes its path absolute: the
// CLR may load it from any working directory.
func (o *Options) checkProfiler() *Refusal {
	if o.Mode == ModeProbe {
		o.Instead = Absolute(o.Profiler)
		o.Profiler = o.Probe
	}
	abs, err := filepath.Abs(o.Profiler)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		return o.noLibrary(runtime.GOOS+"/"+runtime.GOARCH, err)
	}
	o.Profiler = abs
	if real, err := filepath.EvalSymlinks(abs); err == nil && o.Mode == ModeProbe {
		o.Probe = real
	}
	return nil
}

// SharedFileRemedy describes what to do if the probe cannot create the file that it shares with the tool.
const SharedFileRemedy = "let the seccomp filter allow memfd_create, or provide a /dev/shm with 8 MB of free space"

// LibraryRemedy describes how to get the library of the snapshot mode, which go install does
// not build.
const LibraryRemedy = "build it with make build in a clone of seedwalk, then put it beside this program or name it with --profiler or SEEDWALK_PROFILER"

// noLibrary returns the refusal if the needed library cannot be read. For ARM64 on
// Linux, there is no library that suspends the runtime.
func (o *Options) noLibrary(system string, err error) *Refusal {
	if o.Mode == ModeProbe {
		return Refuse(o.Profiler, "the probe cannot be read: "+Reason(err),
			"leave out --probe and SEEDWALK_PROBE: this program carries a probe")
	}
	if system != "linux/arm64" || !errors.Is(err, fs.ErrNotExist) {
		return Refuse(o.Profiler,
			"--mode snapshot needs the profiler library "+LibraryName+", which cannot be read: "+Reason(err),
			LibraryRemedy)
	}
	what := "not supported on ARM64"
	if o.modeWhy != "" {
		what += ", but it is needed: " + o.modeWhy
	}
	return Refuse("--mode snapshot", what,
		"record .NET 9 or later without --mode")
}

// Absolute returns the absolute path of a file. It does not change - and paths that cannot be resolved.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); path != "-" && err == nil {
		return abs
	}
	return path
}

// CommandStdout returns the command's standard output: Stderr if an output uses the standard
// output, otherwise Stdout.
func (o *Options) CommandStdout() *os.File {
	for _, out := range o.Outputs {
		if out.Path == "-" {
			return o.Stderr
		}
	}
	return o.Stdout
}

// Reason returns the text of an error without the path that os puts before it, and without
// the full stop that Windows puts after it.
func Reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return strings.TrimRight(err.Error(), ".\r\n ")
}

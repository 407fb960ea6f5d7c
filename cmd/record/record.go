// Package record runs a command under the profiler and turns what the profiler
// sends into a profile: the library behind `seedwalk record`.
//
// Sources: the CLR's environment variables for profilers are those of
// dotnet/runtime docs/design/coreclr/profiling and src/coreclr/inc/clrconfignames.h;
// exit codes 125, 126, 127 and 128+n follow the POSIX shell and env(1);
// unix(7), credentials(7), signal(7).
//
// Glossary. The command is what the user asked to run. The target is any
// process that connects: the command itself or a .NET process it started. To
// settle is to drain the connections, name the frames and write the outputs.
//
// Strategy. The profiler inside a target connects to a unix socket in a private
// directory, on Windows to a port of this machine that asks for a secret, and sends
// package wire's messages. Samples are folded into distinct
// stacks as they arrive, so memory grows with the number of different stacks and
// not with time. Names of native functions are looked up when settling. Every
// output is written beside its place and renamed, so that a reader never sees
// half a file; where that fails the output goes to another directory and the
// user is told.
//
// Several processes: a .NET command often starts further .NET processes, which
// inherit the environment and connect too. All are recorded. With one process
// the profile is that process; with more, every stack has a root frame
// "process NAME (PID)", and threads of all are listed together. Processes that
// outlive the command are followed to their end if nothing else was recorded, or
// for the time asked for; otherwise they are recorded until the command ends, and
// named (Linux).
//
// Signals: INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP go on to the
// command, but those a terminal sends go to its whole foreground process group,
// so they are not sent a second time while we are in it. The first INT also
// settles the recording once the command has ended, or after Grace if it goes
// on; a second INT quits at once with what there is.
//
// Known gaps: a signal sent by kill(1) to the tool alone while it is in the
// foreground is taken for the terminal's (INT, QUIT, HUP, WINCH, TSTP only).
// On Windows there is Ctrl-C alone, which the console gives to the command too.
package record

import (
	"fmt"
	"os"
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

// Options say what to run and where results go. Command or PID, Profiler and at
// least one of Outputs and Raw must be given.
type Options struct {
	Command    []string
	PID        int           // record this running process in place of a command
	Outside    bool          // with PID: by stopping its threads, with nothing of ours in it
	Env        []string      // of the command, before ours; nil = os.Environ()
	Rate       float64       // samples per second and thread, 0 = DefaultRate; MinRate to MaxRate
	WallEvery  time.Duration // between two samples of a thread that waits, at least; 0: as Rate says
	Duration   time.Duration // record this long from when samples can come, 0 = until the command ends
	Relay      func()        // with PID: keep no samples; called when recordings of Part can begin
	Part       Part          // with PID: record a part of the time of a Relay's recording
	Outputs    []Output
	Raw        string        // also dump the profiler's stream here (debugging)
	PIDFile    string        // the command's process id is written here while it runs
	Mode       Mode          // how samples are taken; "" = the best that there is
	Clock      sampler.Clock // decides when a running thread is sampled; "" = the best that works
	Events     Events        // what is recorded, on the probe's way
	WaitMin    time.Duration // waits and locks shorter than this are counted only
	Probe      string        // path of libseedwalk_probe.so, "" = there is none
	Profiler   string        // path of libseedwalk_profiler.so
	KeepProbe  bool          // keep the frames in which a thread waits for the sampler's own suspension
	StackBytes int           // stack copied per sample, to MaxStackBytes; 0 = the profiler's default
	Stdin      *os.File
	Stdout     *os.File
	Stderr     *os.File
	Grace      time.Duration         // after INT, how long to wait for the command before settling; 0 = 3 s
	Progress   func(Progress)        // about four times a second, and at the end; nil: nobody looks
	Live       func(*export.Profile) // gets the profile so far, from the goroutine of Run; nil: nobody looks
	LiveEvery  time.Duration         // time between two calls of Live
	Stop       <-chan struct{}       // ends the recording when it is closed; nil = never
	Say        func(line string)
	Namer      Namer  // names of native functions; nil = module+0xoffset
	SocketDir  string // where the private directory is made; "" = os.TempDir()
	FailEmpty  bool   // ExitRefused instead of 0 if there is no sample

	user    int            // who owns the process, if it is another user; 0 = we do
	root    string         // of the process's files, as we see it; "" = its files are ours
	reused  bool           // the probe is of an earlier recording
	shared  sampler.Shared // with the process whose events are recorded, on Windows; nil if none are
	section string         // its name
	instead string         // library for processes that the probe's way is not for
	modeWhy string         // why Mode is not the one that was wanted
}

// Part is a part of the time, not set if Until is zero.
type Part struct{ From, Until time.Time }

func (p *Part) set() bool { return !p.Until.IsZero() }

// ofAgent reports whether a caller with several recordings of the process ends them.
func (o *Options) ofAgent() bool { return o.Relay != nil || o.Part.set() }

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

// Progress is what there is to show while recording.
type Progress struct {
	Elapsed   time.Duration // since samples can come; 0 before
	Samples   int64
	Complete  int64 // samples without a gap
	Events    int64 // of the runtime
	Threads   int   // seen in samples
	Processes int   // that have connected
	Stage     string
}

// Written tells where an output went.
type Written struct {
	Output Output
	Path   string // where it is; differs from Output.Path after a fallback, "" if nowhere
	Err    error  // why it is not at Output.Path
}

// Result is what a run gave.
type Result struct {
	ExitCode int // for our own exit: the command's, or one of the Exit codes
	Profile  *export.Profile
	Written  []Written
	PIDs     []int // processes that connected, in order
}

// Refusal says in one line why a recording cannot begin.
type Refusal struct {
	What   string // what stands in the way
	Where  string // the file, variable or argument
	Remedy string
	Code   int // exit code
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s; %s", r.Where, r.What, r.Remedy)
}

// Namer names native code, after sampling.
type Namer = collect.Namer

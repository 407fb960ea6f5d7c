package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// defaultGrace is how long a command may take to end after the first INT
// before the result is written without waiting for it.
const defaultGrace = 3 * time.Second

// progressEvery is the time between two calls of Options.Progress.
const progressEvery = 250 * time.Millisecond

// Run records one command. A *Refusal is returned when nothing was started;
// otherwise Result is given, whatever became of the command.
func Run(opt Options) (*Result, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	srv, err := listen(opt.SocketDir, &opt)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		return nil, &Refusal{What: "cannot listen for the profiler: " + reason(err), Where: opt.SocketDir,
			Remedy: listenRemedy, Code: ExitRefused}
	}
	defer srv.private.close()
	defer srv.close()
	defer srv.dropFiles()
	defer srv.awaitEngines(opt.Say)
	defer srv.outside.Start.End()
	r := &run{opt: &opt, srv: srv, files: newFiles(), exited: make(chan struct{}), start: time.Now(), told: map[string]bool{}}
	r.beginFiles()
	r.signals = &signals{}
	if !opt.ofAgent() {
		r.signals = catchSignals()
		defer r.signals.stop()
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.removePIDFile()
	return r.watch(), nil
}

// check fills in defaults and refuses what cannot work.
func (o *Options) check() error {
	if len(o.Command) == 0 && o.PID == 0 {
		return &Refusal{What: "no command", Where: "arguments", Remedy: "put it after --, as in: seedwalk record -- dotnet app.dll", Code: ExitRefused}
	}
	if why, remedy := UnfitMachine(runtime.GOARCH, NativeMachine()); why != "" {
		return &Refusal{What: why, Where: "system", Remedy: remedy, Code: ExitRefused}
	}
	o.defaults()
	if !(o.Rate >= MinRate && o.Rate <= MaxRate) {
		return &Refusal{What: "out of range", Where: fmt.Sprintf("rate %g", o.Rate),
			Remedy: fmt.Sprintf("choose %g to %d samples per second", MinRate, MaxRate), Code: ExitRefused}
	}
	if o.StackBytes < 0 || o.StackBytes > MaxStackBytes {
		return &Refusal{What: "out of range", Where: fmt.Sprintf("%d bytes of stack", o.StackBytes),
			Remedy: fmt.Sprintf("choose 0 (the profiler's default) to %d", MaxStackBytes), Code: ExitRefused}
	}
	if r := AlreadyRecording(o.Env); r != nil && o.PID == 0 && (needsLibrary || o.Mode != ModeProbe) {
		return r
	}
	if r := o.chooseMode(); r != nil {
		return r
	}
	if o.PID != 0 {
		if r := o.attachable(); r != nil {
			return r
		}
		o.Grace = time.Nanosecond // there is no command to wait for
	}
	return o.checkOutputs()
}

func (o *Options) defaults() {
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

// checkProfiler makes the path absolute: the CLR loads it from wherever the
// command happens to be.
func (o *Options) checkProfiler() *Refusal {
	if o.Mode == ModeProbe {
		o.instead = absolute(o.Profiler)
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

// LibraryRemedy says how to get the library of the snapshot mode, which go install does not
// build.
const LibraryRemedy = "build it with make build in a clone of seedwalk, then put it beside this program or name it with --profiler or SEEDWALK_PROFILER"

// noLibrary says what to do where the library that is needed is not there. For ARM64 on
// Linux nobody builds one that suspends the runtime.
func (o *Options) noLibrary(system string, err error) *Refusal {
	if o.Mode == ModeProbe {
		return &Refusal{What: "the probe cannot be read: " + reason(err), Where: o.Profiler,
			Remedy: "leave out --probe and SEEDWALK_PROBE: this program carries a probe", Code: ExitRefused}
	}
	if system != "linux/arm64" || !errors.Is(err, fs.ErrNotExist) {
		return &Refusal{What: "--mode snapshot needs the profiler library " + LibraryName + ", which cannot be read: " + reason(err), Where: o.Profiler,
			Remedy: LibraryRemedy, Code: ExitRefused}
	}
	what := "there is no library for ARM64 that suspends a runtime"
	if o.modeWhy != "" {
		what += ", and one is needed: " + o.modeWhy
	}
	return &Refusal{What: what, Where: "--mode snapshot", Remedy: "record .NET 9 or later, which needs none, and leave --mode out", Code: ExitRefused}
}

func (o *Options) checkOutputs() error {
	for i, out := range o.Outputs {
		if r := checkWritable(out.Path); r != nil {
			return r
		}
		o.Outputs[i].Path = absolute(out.Path) // the working directory may be gone at the end
	}
	for _, p := range []*string{&o.Raw, &o.PIDFile} {
		if *p == "" {
			continue
		}
		if r := checkWritable(*p); r != nil {
			return r
		}
		*p = absolute(*p)
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); path != "-" && err == nil {
		return abs
	}
	return path
}

// run is a recording under way.
type run struct {
	opt     *Options
	srv     *server
	files   *files
	signals *signals
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the command has ended and code is set
	code    int
	start   time.Time

	mu     sync.Mutex
	saving sync.Mutex // one write of the outputs at a time
	final  bool       // under saving: all outputs have been written for good
	result Result
	left   []*process      // that the command left running
	told   map[string]bool // outputs whose fallback the user knows of
}

// begin starts the command.
func (r *run) begin() error {
	if r.opt.PID != 0 {
		return r.attach()
	}
	for _, line := range Blockers(r.opt.Env) {
		r.opt.Say(line)
	}
	if other := OtherProfiler(r.opt.Env); other != "" {
		r.opt.Say(other + ": another profiler is set: seedwalk runs beside it, as a notification profiler (.NET 6 and later)")
	}
	if line := r.opt.unfit(); line != "" {
		r.opt.Say(line)
	}
	r.cmd = exec.Command(r.opt.Command[0], r.opt.Command[1:]...)
	if runtime.GOOS == "windows" && errors.Is(r.cmd.Err, exec.ErrDot) {
		r.cmd.Err = nil // the command prompt looks in the current directory too
	}
	r.cmd.Env = append(childEnviron(r.opt, r.srv.path), EnvRefused+"="+r.srv.private.path(refusedName))
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = r.opt.Stdin, r.opt.commandStdout(), r.opt.Stderr
	if err := r.cmd.Start(); err != nil {
		return cannotStart(r.opt.Command[0], err)
	}
	if r.srv.probes {
		r.srv.outside.Start.Begin(r.cmd.Process.Pid)
	}
	r.writePIDFile()
	r.follow()
	go func() {
		r.code = exitCode(r.cmd.Wait())
		close(r.exited)
	}()
	return nil
}

// commandStdout is the standard error where the data takes the standard output.
func (o *Options) commandStdout() *os.File {
	for _, out := range o.Outputs {
		if out.Path == "-" {
			return o.Stderr
		}
	}
	return o.Stdout
}

func cannotStart(command string, err error) *Refusal {
	var e *exec.Error
	absent := errors.Is(err, os.ErrNotExist) || errors.As(err, &e) && errors.Is(e.Err, exec.ErrNotFound)
	if absent && !unnamed(command) {
		return &Refusal{What: "command not found", Where: command, Remedy: "check the name and PATH", Code: ExitNotFound}
	}
	what, remedy := startRemedy(command, err)
	if what == "" {
		what = reason(err)
	}
	return &Refusal{What: "cannot run: " + what, Where: command, Remedy: remedy, Code: ExitCannotRun}
}

// exitCode is the code a shell would give: 128+n for a command ended by
// signal n.
func exitCode(err error) int {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		if err != nil {
			return ExitRefused
		}
		return 0
	}
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ExitSignal + int(ws.Signal())
	}
	return e.ExitCode()
}

func (r *run) writePIDFile() {
	if r.opt.PIDFile == "" {
		return
	}
	text := strconv.Itoa(r.cmd.Process.Pid) + "\n"
	if err := r.files.write(r.opt.PIDFile, writeString(text)); err != nil {
		r.opt.Say(fmt.Sprintf("cannot write the process id to %s: %s", r.opt.PIDFile, reason(err)))
	}
}

func writeString(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func (r *run) removePIDFile() {
	if r.opt.PIDFile != "" {
		os.Remove(r.opt.PIDFile)
	}
}

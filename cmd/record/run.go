// Package record runs a command under the profiler and turns what the profiler
// sends into a profile: the library behind `seedwalk record`.
//
// Sources: signal(7); cmd/record/options has those of settings and exit codes.
//
// Glossary. The command is what the user asked to run. The target is any
// process that connects: the command itself or a .NET process it started. To
// settle is to drain the connections, name the frames and write the outputs.
//
// Strategy. The profiler inside a target connects to a unix socket in a private directory.
// On Windows, the profiler connects to a port of this machine and sends a secret first.
// It then sends the messages of package wire. Native functions are named at the end, when
// the recording settles.
//
// Several processes: a .NET command often starts further .NET processes, which
// inherit the environment and connect too. All are recorded. With one process
// the profile is that process; with more, every stack has a root frame
// "process NAME (PID)", and threads of all are listed together. Processes that
// outlive the command are recorded to their end if nothing else was recorded, or
// for the requested duration. Otherwise they are recorded until the command ends,
// and a note names them (Linux).
//
// Signals: INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP are passed on to
// the command. A terminal sends its signals to its whole foreground process group,
// so they are not sent a second time while we are in that group. After the first
// INT, the recording settles once the command has ended, or after Grace. A second
// INT writes the samples so far and quits at once.
//
// Known gaps: kill(1) may send INT, QUIT, HUP, WINCH, or TSTP to the tool alone while the
// tool is in the foreground. The tool then takes it for the terminal's signal.
// On Windows there is only Ctrl-C, which the console sends to the command too.
package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/inflow"
	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/record/output"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/sample/alarm"
)

// progressEvery is the time between two calls of Options.Progress.
const progressEvery = 250 * time.Millisecond

// Run records a command or a running process. If nothing was started, the error is an *options.Refusal;
// otherwise there is a Result, however the command ended. Run catches the signals of the package comment.
func Run(opt options.Options) (*options.Result, error) {
	defer func() { opt.Tmp.Close() }()
	if err := check(&opt); err != nil {
		return nil, err
	}
	srv, err := serve(opt.SocketDir, &opt)
	if refusal := (*options.Refusal)(nil); errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		return nil, options.Refuse(opt.SocketDir,
			"cannot listen for the profiler: "+options.Reason(err), listenRemedy)
	}
	defer srv.close()
	defer srv.dropFiles()
	defer srv.awaitEngines(opt.Say)
	defer srv.outside.Start.End()
	r := &run{opt: &opt, srv: srv, files: output.New(), exited: make(chan struct{}),
		over: make(chan struct{}), start: time.Now(), announced: map[string]bool{}}
	r.beginFiles()
	r.signals = &signals{}
	if !opt.OfAgent() {
		r.signals = catchSignals()
		defer r.signals.stop()
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.removePIDFile()
	defer close(r.over)
	return r.watch(), nil
}

// Attachable returns why a running process cannot be recorded, nil if no obstacle is known.
func Attachable(pid int) *options.Refusal { return attachable(&options.Options{PID: pid}) }

// check fills in defaults and refuses options that cannot work.
func check(o *options.Options) error {
	if len(o.Command) == 0 && o.PID == 0 {
		return options.Refuse("arguments", "no command",
			"put it after --, as in: seedwalk record -- dotnet app.dll")
	}
	if why, remedy := options.UnsupportedMachine(runtime.GOARCH, options.NativeMachine()); why != "" {
		return options.Refuse("system", why, remedy)
	}
	if r := options.FewFiles(); r != nil {
		return r
	}
	o.Defaults()
	if !(o.Rate >= options.MinRate && o.Rate <= options.MaxRate) {
		return options.Refuse(fmt.Sprintf("rate %g", o.Rate), "out of range",
			fmt.Sprintf("choose %g to %d samples per second", options.MinRate, options.MaxRate))
	}
	if o.StackBytes < 0 || o.StackBytes > options.MaxStackBytes {
		return options.Refuse(fmt.Sprintf("%d bytes of stack", o.StackBytes), "out of range",
			fmt.Sprintf("choose 0 (the profiler's default) to %d", options.MaxStackBytes))
	}
	if r := options.AlreadyRecording(o.Env); r != nil && o.PID == 0 &&
		(options.NeedsLibrary || o.Mode != options.ModeProbe) {
		return r
	}
	if r := o.ChooseMode(); r != nil {
		return r
	}
	if o.PID != 0 {
		if r := attachable(o); r != nil {
			return r
		}
		o.Grace = time.Nanosecond // there is no command to wait for
	}
	return checkOutputs(o)
}

func checkOutputs(o *options.Options) error {
	for i, out := range o.Outputs {
		if r := output.CheckWritable(out.Path); r != nil {
			return r
		}
		o.Outputs[i].Path = options.Absolute(out.Path) // the working directory may be gone at the end
	}
	for _, p := range []*string{&o.Raw, &o.PIDFile} {
		if *p == "" {
			continue
		}
		if r := output.CheckWritable(*p); r != nil {
			return r
		}
		*p = options.Absolute(*p)
	}
	return nil
}

// run is a recording in progress.
type run struct {
	opt     *options.Options
	srv     *server
	files   *output.Files
	signals *signals
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the command has ended and code is set
	over    chan struct{} // closed when the recording has ended
	code    int
	lasted  time.Duration // from start to the command's end; set with code
	start   time.Time

	mu        sync.Mutex
	saving    sync.Mutex // one write of the outputs at a time
	final     bool       // under saving: all outputs have been written for the last time
	result    options.Result
	left      []*inflow.Process // that the command left running
	announced map[string]bool   // outputs whose failure has been reported to the user
}

// begin starts the command, or attaches to the process.
func (r *run) begin() error {
	if r.opt.PID != 0 {
		return r.attach()
	}
	for _, line := range options.Blockers(r.opt.Env) {
		r.opt.Say(line)
	}
	if other := options.OtherProfiler(r.opt.Env); other != "" {
		r.opt.Say(other + ": another profiler is set: seedwalk runs beside it, as a notification profiler (.NET 6 and later)")
	}
	if line := r.opt.Unsupported(); line != "" {
		r.opt.Say(line)
	}
	r.cmd = exec.Command(r.opt.Command[0], r.opt.Command[1:]...)
	if runtime.GOOS == "windows" && errors.Is(r.cmd.Err, exec.ErrDot) {
		r.cmd.Err = nil // the command prompt looks in the current directory too
	}
	r.cmd.Env = append(options.ChildEnviron(r.opt, r.srv.path),
		options.EnvRefused+"="+r.srv.folder.Named(listen.RefusedName))
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = r.opt.Stdin, r.opt.CommandStdout(), r.opt.Stderr
	start := r.cmd.Start
	if r.srv.probes {
		start = func() error { return r.srv.outside.Start.Start(r.cmd) }
	}
	if err := alarm.WithUsualSlack(start); err != nil {
		return cannotStart(r.opt.Command, err)
	}
	r.writePIDFile()
	r.follow()
	go func() {
		r.code = exitCode(r.srv.outside.Start.Wait(r.cmd))
		r.lasted = time.Since(r.start)
		close(r.exited)
	}()
	return nil
}

func cannotStart(command []string, err error) *options.Refusal {
	var e *exec.Error
	absent := errors.Is(err, os.ErrNotExist) || errors.As(err, &e) && errors.Is(e.Err, exec.ErrNotFound)
	if absent && !needsStarter(command[0]) {
		return &options.Refusal{What: "command not found", Where: command[0],
			Remedy: "check the name and PATH", Code: options.ExitNotFound}
	}
	what, remedy := startRemedy(command, err)
	if what == "" {
		what = options.Reason(err)
	}
	return &options.Refusal{What: "cannot run: " + what, Where: command[0],
		Remedy: remedy, Code: options.ExitCannotRun}
}

// exitCode returns the code that a shell would return: 128+n for a command ended by
// signal n.
func exitCode(err error) int {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		if err != nil {
			return options.ExitRefused
		}
		return 0
	}
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return options.ExitSignal + int(ws.Signal())
	}
	return e.ExitCode()
}

func (r *run) writePIDFile() {
	if r.opt.PIDFile == "" {
		return
	}
	text := strconv.Itoa(r.cmd.Process.Pid) + "\n"
	if err := r.files.Write(r.opt.PIDFile, writeString(text)); err != nil {
		r.opt.Say(fmt.Sprintf("cannot write the process id to %s: %s", r.opt.PIDFile, options.Reason(err)))
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

// signals receives the signals of this process.
type signals struct{ c chan os.Signal }

// catchSignals begins catching, except for signals we were started to ignore (nohup): the command must
// continue to ignore those, and a handler of ours would make them deadly for it.
func catchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 64)}
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }

// build makes the profile of what has arrived so far. A nil Namer names native frames module+0xoffset.
func (r *run) build(n options.Namer) (*export.Profile, *collect.Info) {
	all, empty := r.srv.all(), r.empty()
	var processes []*collect.Process
	for _, p := range all {
		p.Mu.RLock()
		defer p.Mu.RUnlock()
		processes = append(processes, p.Process)
	}
	info := r.info(processes, empty)
	p := collect.Build(&info, processes, n)
	if line := r.srv.cutNote(); line != "" { // known only now: Build has read names
		info.Notes, p.Stats.Notes = append(info.Notes, line), append(p.Stats.Notes, line)
	}
	return p, &info
}

// info describes the recording so far. The caller holds the locks of the processes.
func (r *run) info(processes []*collect.Process, empty string) collect.Info {
	want, _ := r.opt.Events.Parse()
	info := collect.Info{Command: r.opt.Command, RateHz: r.opt.Rate, Start: r.start,
		AtFirst: r.timedFromFirst(), Empty: empty, Notes: r.srv.userNotes()}
	for _, e := range options.RuntimeEvents {
		if want.Events&e.Probe != 0 {
			info.Events = append(info.Events, e.Events...)
		}
	}
	probed := false
	for _, p := range processes {
		probed = probed || p.Probed()
	}
	why, note := r.srv.fallback()
	mode := r.opt.Taken(why, probed)
	info.Way, info.WayWhy = string(mode.Mode), mode.Way()
	if mode.Mode != r.opt.Mode && len(processes) == 1 { // WayWhy has the reason
		info.Notes = slices.DeleteFunc(info.Notes, func(n string) bool { return n == note })
	}
	select {
	case <-r.exited:
		info.ExitNote = exitNote(r.code)
	default:
	}
	return info
}

// timedFromFirst reports whether --duration counts from the first sample.
func (r *run) timedFromFirst() bool {
	all := r.srv.all()
	return len(all) > 0 && all[0].Timed != 0
}

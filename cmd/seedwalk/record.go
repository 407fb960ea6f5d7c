package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/seedwalk/seedwalk/export"
	"github.com/seedwalk/seedwalk/record"
)

const recordHelp = `Usage: seedwalk record [flags] -- COMMAND ARGS
       seedwalk record [flags] --pid PID

Runs COMMAND with the profiler in it and records its stacks until it ends, until Ctrl-C, or
for --duration. Input, output, signals and the exit code are the command's own. .NET processes
that it starts are recorded too; each is then a root frame of its own in the same profile.
What it leaves running is recorded until it ends if nothing else was, or for --duration; helpers
of a command that was recorded itself are recorded until it ends, and named (Linux).

  --pid PID          record a running process (.NET 8 and later on Linux, .NET 10 and later on
                     Windows x86-64), until Ctrl-C or for --duration; nothing of seedwalk runs
                     in it afterwards, and it can be recorded again
  --outside          with --pid: the kernel copies the stacks of running threads (perf_event), and
                     each thread that waits is stopped for as long as its stack is copied, as a
                     debugger does, with nothing of seedwalk in the process: for native programs
                     and where there is no diagnostics port (NativeAOT, diagnostics off); the
                     process may see calls such as epoll_wait interrupted
  --rate HZ          samples per second and thread, 0.1 to 10000 (default 99)
  --mode NAME        probe: stacks are copied by a small probe (on Windows by the tool itself) and
                     walked from outside; the runtime is never suspended (default on Linux
                     for .NET 8 and later, on Windows for .NET 10)
                     snapshot: the runtime is suspended for each sample, on Linux with a bias
                     to its safe points; more than 32 threads take turns
  --clock NAME       when a running thread is sampled (Linux, the probe's way): perf: by perf events
                     with high-resolution timers; timer: by CPU timers, to which work bound to
                     the kernel's tick is invisible; auto: perf where the kernel permits it, else
                     timer (default)
  --events NAMES     what to record, with commas between: cpu: where processor time goes; wall:
                     where threads are (default cpu,wall); waits, locks: every wait for a wait
                     handle or a lock with its duration, and who had the lock; alloc: allocated
                     bytes by type; exception: exceptions as they are thrown; only of the probe's
                     way, the last four need .NET 9 and a session in the process
  --wait-min D       waits and locks shorter than D are counted, without a stack (default 1ms)
  --duration D       stop recording after D, such as 3 (seconds), 30s or 2m; the command runs on
                     to its end
  --output FILE      where the result goes; repeat it or separate with commas; the format is
                     that of the name's ending; - is the standard output, and what the command
                     writes to its own then goes to the standard error
                     (default seedwalk.html,seedwalk.pb.gz)
  --format NAME      format where the ending does not say it, or instead of it; one for all
                     outputs or one for each
  --tree             also print the hottest stacks as a tree when done
  --json             print the summary as one line of JSON, not as text (standard error;
                     docs/json.md has its schema)
  --quiet            print neither progress nor summary; problems are still told
  --fail-empty       exit code 125 if the command ended well and there is no sample of it
  --pid-file FILE    write the command's process id here while it runs
  --probe PATH       the probe (default: SEEDWALK_PROBE, beside this program, ../lib, or the
                     one that this program carries)
  --profiler PATH    the library of the snapshot mode, which it then chooses (default: beside
                     this program, ../lib, or SEEDWALK_PROFILER)
  --stack-bytes N    snapshot: stack copied per thread and sample (default 1048576, at most
                     268435456)
  --keep-suspension  snapshot: show the runtime's frames in which a thread waits for the sampler
                     itself (left out otherwise: the program did not put them there)
  --raw FILE         also dump raw samples here, to look for faults in seedwalk

Formats:
%s
Examples:
  seedwalk record -- dotnet app.dll
  seedwalk record --rate 500 --duration 30s --output hot.html -- ./MyService --port 80
  seedwalk record --pid 4711 --duration 10s
  seedwalk record --output app.folded,app.pb.gz -- dotnet test && go tool pprof -top app.pb.gz
  seedwalk record --quiet --output - --format folded -- dotnet app.dll 2>/dev/null | sort -k2

Ctrl-C once: the command gets it as ever; when it ends, or after three seconds, the result is
written. Ctrl-C again: seedwalk ends at once; what was recorded is kept, native names may lack.
Nothing happens? "seedwalk doctor -- COMMAND" says what stands in the way.

Exit code: the command's; 125 seedwalk could not begin or keep the result (or, with
--fail-empty, has none), 126 the command could not be run, 127 it was not found,
128+n signal n ended it, 2 wrong usage.
`

func recordHelpText() string {
	var b strings.Builder
	for _, f := range export.Formats() {
		fmt.Fprintf(&b, "  %-11s %-17s %s\n", f.Name, f.Extensions[0], f.Description)
	}
	return fmt.Sprintf(recordHelp, b.String())
}

// list is a flag that may be repeated and takes several values at once.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	for _, v := range strings.Split(s, ",") {
		if v == "" {
			return errors.New("empty name")
		}
		*l = append(*l, v)
	}
	return nil
}

// seconds is a duration, or a plain number of seconds.
type seconds time.Duration

func (d *seconds) String() string { return time.Duration(*d).String() }

func (d *seconds) Set(s string) error {
	v, err := time.ParseDuration(s)
	if _, plain := strconv.ParseFloat(s, 64); plain == nil {
		v, err = time.ParseDuration(s + "s")
	}
	if err != nil {
		return errors.New("not a time such as 3, 30s, or 2m")
	}
	*d = seconds(v)
	return nil
}

// recordFlags are the flags of record.
type recordFlags struct {
	opt               record.Options
	outputs, formats  list
	tree, json, quiet bool
}

func runRecord(args []string) int {
	var f recordFlags
	set := flag.NewFlagSet("record", flag.ContinueOnError)
	set.IntVar(&f.opt.PID, "pid", 0, "")
	set.BoolVar(&f.opt.Outside, "outside", false, "")
	set.Float64Var(&f.opt.Rate, "rate", record.DefaultRate, "")
	set.Var((*seconds)(&f.opt.Duration), "duration", "")
	set.Var(&f.outputs, "output", "")
	set.Var(&f.outputs, "o", "")
	set.Var(&f.formats, "format", "")
	set.BoolVar(&f.tree, "tree", false, "")
	set.BoolVar(&f.json, "json", false, "")
	set.BoolVar(&f.quiet, "quiet", false, "")
	set.BoolVar(&f.opt.FailEmpty, "fail-empty", false, "")
	set.StringVar(&f.opt.PIDFile, "pid-file", "", "")
	set.StringVar((*string)(&f.opt.Mode), "mode", "", "")
	set.StringVar((*string)(&f.opt.Clock), "clock", "", "")
	set.StringVar((*string)(&f.opt.Events), "events", "", "")
	f.opt.WaitMin = record.DefaultWaitMin
	set.Var((*seconds)(&f.opt.WaitMin), "wait-min", "")
	set.StringVar(&f.opt.Probe, "probe", "", "")
	set.StringVar(&f.opt.Profiler, "profiler", "", "")
	set.IntVar(&f.opt.StackBytes, "stack-bytes", 0, "")
	set.BoolVar(&f.opt.KeepProbe, "keep-suspension", false, "")
	set.StringVar(&f.opt.Raw, "raw", "", "")
	if code, done := parse(set, recordHelpText(), args); done {
		return code
	}
	f.opt.Command = set.Args()
	if err := f.check(); err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk record: %v; see seedwalk record --help\n", err)
		return exitUsage
	}
	return f.run()
}

// check looks at what the user typed; what the machine allows is package
// record's to check.
func (f *recordFlags) check() error {
	switch {
	case f.opt.PID < 0:
		return errors.New("--pid must be the number of a process")
	case f.opt.PID != 0 && len(f.opt.Command) > 0:
		return errors.New("name a command or --pid, not both")
	case f.opt.Outside && (f.opt.PID == 0 || f.opt.Mode != ""):
		return errors.New("--outside needs --pid, and cannot be combined with --mode")
	case f.opt.PID != 0 && f.opt.Mode == record.ModeSnapshot:
		return errors.New("--pid cannot be combined with --mode snapshot")
	case f.opt.PID == 0 && len(f.opt.Command) == 0:
		return errors.New("no command; put it after --")
	}
	if !(f.opt.Rate >= record.MinRate && f.opt.Rate <= record.MaxRate) {
		return fmt.Errorf("--rate %g is out of range: choose %g to %d samples per second", f.opt.Rate, record.MinRate, record.MaxRate)
	}
	if !f.opt.Clock.Known() {
		return fmt.Errorf("there is no clock %q; choose auto, perf, or timer", f.opt.Clock)
	}
	if f.opt.Duration < 0 {
		return errors.New("--duration cannot be negative")
	}
	if f.opt.StackBytes < 0 || f.opt.StackBytes > record.MaxStackBytes {
		return fmt.Errorf("--stack-bytes %d is out of range: choose 0 (the default) to %d", f.opt.StackBytes, record.MaxStackBytes)
	}
	if len(f.outputs) == 0 {
		f.outputs = defaultOutputs(f.formats)
	}
	var err error
	f.opt.Outputs, err = pairOutputs(f.outputs, f.formats)
	return err
}

// defaultOutputs are named after the formats asked for.
func defaultOutputs(formats list) list {
	if len(formats) == 0 {
		return list{"seedwalk.html", "seedwalk.pb.gz"}
	}
	var out list
	for _, name := range formats {
		ext := "." + name
		if f, ok := export.ByName(name); ok {
			ext = f.Extensions[0]
		}
		out = append(out, "seedwalk"+ext)
	}
	return out
}

// pairOutputs gives every output its format.
func pairOutputs(outputs, formats list) ([]record.Output, error) {
	if len(formats) > 1 && len(formats) != len(outputs) {
		return nil, fmt.Errorf("%d formats for %d outputs: give one format for all outputs, or one for each", len(formats), len(outputs))
	}
	var out []record.Output
	seen := map[string]bool{}
	for i, path := range outputs {
		if seen[path] {
			return nil, fmt.Errorf("output %s is named twice", path)
		}
		seen[path] = true
		format, err := formatOf(path, i, formats)
		if err != nil {
			return nil, err
		}
		out = append(out, record.Output{Path: path, Format: format})
	}
	return out, nil
}

func formatOf(path string, i int, formats list) (export.Format, error) {
	if len(formats) > 0 {
		name := formats[min(i, len(formats)-1)]
		if f, ok := export.ByName(name); ok {
			return f, nil
		}
		return export.Format{}, fmt.Errorf("there is no format %q; choose one of %s", name, strings.Join(formatNames(), ", "))
	}
	if f, ok := export.ByExtension(path); ok {
		return f, nil
	}
	return export.Format{}, fmt.Errorf("the ending of %s is not that of a format; add --format with one of %s", path, strings.Join(formatNames(), ", "))
}

func formatNames() []string {
	var out []string
	for _, f := range export.Formats() {
		out = append(out, f.Name)
	}
	return out
}

func (f *recordFlags) run() int {
	if f.opt.Profiler == "" {
		f.opt.Profiler = findProfiler()
	} else if f.opt.Mode == "" {
		f.opt.Mode = record.ModeSnapshot
	}
	if f.opt.Probe == "" {
		f.opt.Probe = findProbe()
	}
	screen := newScreen(os.Stderr, f.quiet || f.json)
	f.opt.Stdin, f.opt.Stdout, f.opt.Stderr = os.Stdin, os.Stdout, os.Stderr
	f.opt.Namer = newNamer()
	f.opt.Say = screen.say
	if screen.live {
		f.opt.Progress = screen.progress
	}
	res, err := record.Run(f.opt)
	screen.clear()
	var refusal *record.Refusal
	if errors.As(err, &refusal) {
		screen.say(refusal.Error())
		return refusal.Code
	}
	if err != nil {
		screen.say(err.Error())
		return record.ExitRefused
	}
	f.report(res)
	return res.ExitCode
}

// report prints the summary on the standard error; the standard output is the
// command's.
func (f *recordFlags) report(res *record.Result) {
	if f.json {
		writeJSONSummary(os.Stderr, res)
		return
	}
	if f.quiet || res.Profile == nil {
		return
	}
	opt := textOptions(os.Stderr)
	export.WriteSummary(os.Stderr, res.Profile, opt)
	if f.tree {
		fmt.Fprintln(os.Stderr)
		export.WriteTree(os.Stderr, res.Profile, opt)
	}
	for _, w := range res.Written {
		if w.Path != "" && w.Path != "-" {
			fmt.Fprintf(os.Stderr, "wrote %s\n", shortPath(w.Path))
		}
	}
}

// textOptions fit a terminal, if that is what w is.
func textOptions(w *os.File) (opt export.TextOptions) {
	if !term.IsTerminal(int(w.Fd())) {
		return opt
	}
	opt.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(w.Fd())); err == nil {
		opt.Width = width
	}
	return opt
}

// jsonSummary is the line that --json prints: the figures as every output has them
// (docs/json.md), and what became of the run.
type jsonSummary struct {
	export.Recording
	ExitCode  int      `json:"exit_code"`
	Connected []int    `json:"pids"`
	Outputs   []string `json:"outputs"`
	Problems  []string `json:"problems,omitempty"`
}

func writeJSONSummary(w io.Writer, res *record.Result) {
	p := res.Profile
	if p == nil { // nothing has connected
		p = &export.Profile{}
	}
	s := jsonSummary{Recording: export.NewRecording("seedwalk-recording", p), ExitCode: res.ExitCode, Connected: res.PIDs}
	for _, o := range res.Written {
		s.Outputs = append(s.Outputs, o.Path)
		if o.Err != nil {
			s.Problems = append(s.Problems, o.Output.Path+": "+o.Err.Error())
		}
	}
	line, err := json.Marshal(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "seedwalk:", err)
		return
	}
	fmt.Fprintf(w, "%s\n", line)
}

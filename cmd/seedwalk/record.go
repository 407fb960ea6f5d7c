package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/export"
)

const recordHelp = `Usage: seedwalk record [flags] -- COMMAND ARGS
       seedwalk record [flags] --pid PID

Runs COMMAND and records its stacks until it ends, until Ctrl-C, or for --duration. Input,
output, signals, and the exit code are the command's own. .NET processes that it starts are
recorded too. Each of them is a root frame of its own in the same profile.
If the command itself is not recorded, processes that it leaves running are recorded until they
end, or for --duration. Otherwise they are recorded until the command ends, and listed (Linux).

  --pid PID          record a running process (.NET 8 and later on Linux, .NET 10 and later on
                     Windows x86-64), until Ctrl-C or for --duration; nothing of seedwalk runs
                     in it afterwards, and it can be recorded again
  --outside          with --pid: put nothing of seedwalk into the process. The kernel copies the
                     stacks of running threads (perf_event). Each waiting thread is stopped while
                     its stack is copied, as by a debugger. For native programs, NativeAOT, and
                     processes without a diagnostics port. The process may see interrupted calls
                     such as epoll_wait.
  --rate HZ          samples per second and thread, 0.1 to 10000 (default 99)
  --mode NAME        probe: a small probe (on Windows the tool itself) copies stacks, and the tool
                     walks the copies; the runtime is never suspended (default on Linux for
                     .NET 8 and later, on Windows for .NET 10)
                     snapshot: the runtime is suspended for each sample, on Linux with a bias
                     to its safe points; more than 32 threads take turns
  --clock NAME       when a running thread is sampled (Linux, --mode probe):
                     perf: perf events with high-resolution timers
                     random: at random moments, where perf events are forbidden; misses parts of
                     bursts shorter than half a millisecond
                     timer: by CPU timers, which miss work in step with the kernel's tick
                     auto: perf where the kernel permits it, else random (default)
  --events NAMES     what to record, separated by commas (default cpu,wall):
                     cpu: where CPU time goes; wall: where threads are
                     waits, locks: every wait for a wait handle or a lock, with its duration and
                     the owner of the lock; alloc: allocated bytes by type; exception: thrown
                     exceptions. These four need --mode probe and .NET 9 or later.
  --async            add to the stack of a thread that runs an async method the async methods that
                     await it (Linux, --mode probe, .NET 9 and later)
  --inlines          show methods that the JIT compiler inlined as frames of their own: sets
                     DOTNET_RichDebugInfo=1 for the command, which costs it some memory
                     (.NET 9)
  --wait-min D       count waits and locks shorter than D, but record no stack (default 1ms)
  --duration D       stop recording after D, such as 3 (seconds), 30s, or 2m; the command runs on
                     to its end
  --output FILE      where the result goes; repeat it or separate with commas; the ending of the
                     name chooses the format; - is the standard output, and the command's own
                     standard output then goes to the standard error
                     (default seedwalk.html,seedwalk.pb.gz,seedwalk.swrec)
  --format NAME      format, where the ending does not say it or to override it: one for all
                     outputs, or one for each
  --symbols DIR|URL  look for symbol files (ELF, PDB) here too, by build ID; repeat it or
                     separate with commas. A folder has the files side by side, or the layout of
                     gdb, dotnet-symbol, or debuginfod. A URL is a debuginfod or symbol server,
                     and the word debuginfod means those in DEBUGINFOD_URLS.
  --tree             also print the hottest stacks as a tree at the end
  --json             print the summary as one line of JSON instead of text (standard error;
                     docs/json.md has its schema)
  --quiet            print neither progress nor summary; problems are still reported
  --fail-empty       exit with 125 if the command succeeded and there is no sample
  --pid-file FILE    write the command's process ID here while it runs
  --probe PATH       the probe (default: SEEDWALK_PROBE, beside this program, ../lib, or the
                     one inside this program)
  --profiler PATH    the library for --mode snapshot; chooses that mode (default: beside
                     this program, ../lib, or SEEDWALK_PROFILER)
  --stack-bytes N    snapshot: bytes of stack copied per thread and sample (default 1048576, at
                     most 268435456)
  --keep-suspension  snapshot: show the runtime's frames in which a thread waits for the sampler
  --raw FILE         also write raw samples here, to look for faults in seedwalk

Formats:
%s
Examples:
  seedwalk record -- dotnet app.dll
  seedwalk record --rate 500 --duration 30s --output hot.html -- ./MyService --port 80
  seedwalk record --pid 4711 --duration 10s
  seedwalk record --output app.folded,app.pb.gz -- dotnet test && go tool pprof -top app.pb.gz
  seedwalk record --quiet --output - --format folded -- dotnet app.dll 2>/dev/null | sort -k2

Ctrl-C once: the command gets it as usual; the result is written when the command ends, or after
three seconds. Ctrl-C again: seedwalk ends at once. The samples are kept, but some native names
may be missing. If nothing is recorded, "seedwalk doctor -- COMMAND" says what stops it.

Exit code: the command's own; 125 seedwalk could not begin or could not keep the result (or, with
--fail-empty, there is no sample), 126 the command could not be run, 127 it was not found,
128+n signal n ended it, 2 wrong usage.
`

func recordHelpText() string {
	return withFormats(recordHelp, append(export.Formats(), export.RecordingFile))
}

// withFormats returns a help text with its list of formats.
func withFormats(help string, formats []export.Format) string {
	var b strings.Builder
	for _, f := range formats {
		fmt.Fprintf(&b, "  %-11s %-17s %s\n", f.Name, f.Extensions[0], f.Description)
	}
	return fmt.Sprintf(help, b.String())
}

// recordFlags are the flags of record.
type recordFlags struct {
	opt               options.Options
	outputs, formats  cli.List
	symbols           cli.SymbolList
	tree, json, quiet bool
}

func runRecord(args []string) int {
	var f recordFlags
	set := flag.NewFlagSet("record", flag.ContinueOnError)
	set.Var((*cli.PID)(&f.opt.PID), "pid", "")
	set.BoolVar(&f.opt.Outside, "outside", false, "")
	set.Float64Var(&f.opt.Rate, "rate", options.DefaultRate, "")
	set.Var((*cli.Seconds)(&f.opt.Duration), "duration", "")
	set.Var(&f.outputs, "output", "")
	set.Var(&f.outputs, "o", "")
	set.Var(&f.symbols, "symbols", "")
	set.Var(&f.formats, "format", "")
	set.BoolVar(&f.tree, "tree", false, "")
	set.BoolVar(&f.json, "json", false, "")
	set.BoolVar(&f.quiet, "quiet", false, "")
	set.BoolVar(&f.opt.FailEmpty, "fail-empty", false, "")
	set.StringVar(&f.opt.PIDFile, "pid-file", "", "")
	set.StringVar((*string)(&f.opt.Mode), "mode", "", "")
	set.StringVar((*string)(&f.opt.Clock), "clock", "", "")
	set.BoolVar(&f.opt.Async, "async", false, "")
	set.BoolVar(&f.opt.Inlines, "inlines", false, "")
	set.StringVar((*string)(&f.opt.Events), "events", "", "")
	f.opt.WaitMin = options.DefaultWaitMin
	set.Var((*cli.Seconds)(&f.opt.WaitMin), "wait-min", "")
	set.StringVar(&f.opt.Probe, "probe", "", "")
	set.StringVar(&f.opt.Profiler, "profiler", "", "")
	set.IntVar(&f.opt.StackBytes, "stack-bytes", 0, "")
	set.BoolVar(&f.opt.KeepProbe, "keep-suspension", false, "")
	set.StringVar(&f.opt.Raw, "raw", "", "")
	if code, done := cli.Parse(set, recordHelpText(), args); done {
		return code
	}
	f.opt.Command = set.Args()
	if err := f.check(); err != nil {
		return cli.Usage("record", err)
	}
	return f.run()
}

// check checks what the user typed; whether the machine allows it is checked by package record.
func (f *recordFlags) check() error {
	switch {
	case f.opt.PID != 0 && len(f.opt.Command) > 0:
		return errors.New("name a command or --pid, not both")
	case f.opt.Outside && (f.opt.PID == 0 || f.opt.Mode != ""):
		return errors.New("--outside needs --pid, and cannot be combined with --mode")
	case f.opt.PID != 0 && f.opt.Inlines:
		return errors.New("--inlines needs a command: a running process keeps what its environment said when it started")
	case f.opt.Mode == options.ModeSnapshot && (f.opt.Async || f.opt.Clock != ""):
		return errors.New("--async and --clock need --mode probe")
	case f.opt.PID != 0 && f.opt.Mode == options.ModeSnapshot:
		return errors.New("--pid cannot be combined with --mode snapshot")
	case f.opt.PID == 0 && len(f.opt.Command) == 0:
		return errors.New("no command; put it after --")
	}
	if !(f.opt.Rate >= options.MinRate && f.opt.Rate <= options.MaxRate) {
		return fmt.Errorf("--rate %g is out of range: choose %g to %d samples per second", f.opt.Rate,
			options.MinRate, options.MaxRate)
	}
	if err := f.opt.Clock.Check(); err != nil {
		return err
	}
	if f.opt.Duration < 0 {
		return errors.New("--duration cannot be negative")
	}
	if f.opt.StackBytes < 0 || f.opt.StackBytes > options.MaxStackBytes {
		return fmt.Errorf("--stack-bytes %d is out of range: choose 0 (the default) to %d",
			f.opt.StackBytes, options.MaxStackBytes)
	}
	if len(f.outputs) == 0 {
		f.outputs = defaultOutputs(f.formats)
	}
	var err error
	f.opt.Outputs, err = pairOutputs(f.outputs, f.formats)
	return err
}

// defaultOutputs are named after the formats asked for.
func defaultOutputs(formats cli.List) cli.List {
	if len(formats) == 0 {
		return cli.List{"seedwalk.html", "seedwalk.pb.gz", "seedwalk.swrec"}
	}
	var out cli.List
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
func pairOutputs(outputs, formats cli.List) ([]options.Output, error) {
	if len(formats) > 1 && len(formats) != len(outputs) {
		return nil, fmt.Errorf("%d formats for %d outputs: give one format for all outputs, or one for each",
			len(formats), len(outputs))
	}
	var out []options.Output
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
		out = append(out, options.Output{Path: path, Format: format})
	}
	return out, nil
}

func formatOf(path string, i int, formats cli.List) (export.Format, error) {
	if len(formats) > 0 {
		name := formats[min(i, len(formats)-1)]
		if f, ok := export.ByName(name); ok {
			return f, nil
		}
		return export.Format{}, fmt.Errorf("there is no format %q; choose one of %s", name,
			strings.Join(formatNames(), ", "))
	}
	if f, ok := export.ByExtension(path); ok {
		return f, nil
	}
	return export.Format{}, fmt.Errorf("the ending of %s is not that of a format; add --format with one of %s", path, strings.Join(formatNames(), ", "))
}

func formatNames() []string {
	var out []string
	for _, f := range append(export.Formats(), export.RecordingFile) {
		out = append(out, f.Name)
	}
	return out
}

func (f *recordFlags) run() int {
	if f.opt.Profiler == "" {
		f.opt.Profiler = cli.FindProfiler()
	} else if f.opt.Mode == "" {
		f.opt.Mode = options.ModeSnapshot
	}
	if f.opt.Probe == "" {
		f.opt.Probe = cli.FindProbe()
	}
	screen := newScreen(os.Stderr, f.quiet || f.json)
	f.opt.Stdin, f.opt.Stdout, f.opt.Stderr = os.Stdin, os.Stdout, os.Stderr
	f.opt.Namer = cli.NewNamer(f.symbols, nil)
	f.opt.Say = screen.say
	if screen.live {
		f.opt.Progress = screen.progress
	}
	res, err := record.Run(f.opt)
	screen.clear()
	cli.ReportRefused(f.opt.Namer, screen.say)
	var refusal *options.Refusal
	if errors.As(err, &refusal) {
		if refusal.Code == options.ExitUsage {
			return cli.Usage("record", refusal)
		}
		screen.say(refusal.Error())
		return refusal.Code
	}
	if err != nil {
		screen.say(err.Error())
		return options.ExitRefused
	}
	f.report(res)
	return res.ExitCode
}

// report prints the summary on the standard error; the standard output is the command's.
func (f *recordFlags) report(res *options.Result) {
	if f.json {
		writeJSONSummary(os.Stderr, res)
		return
	}
	if f.quiet || res.Profile == nil {
		return
	}
	opt := cli.TextOptions(os.Stderr)
	export.WriteSummary(os.Stderr, res.Profile, opt)
	if f.tree {
		fmt.Fprintln(os.Stderr)
		export.WriteTree(os.Stderr, res.Profile, opt)
	}
	for _, w := range res.Written {
		if w.Path != "" && w.Path != "-" {
			fmt.Fprintf(os.Stderr, "wrote %s\n", cli.ShortPath(w.Path))
		}
	}
}

// jsonSummary is the line that --json prints: the figures as in every output (docs/json.md), and how the run
// ended.
type jsonSummary struct {
	export.Recording
	ExitCode  int      `json:"exit_code"`
	Connected []int    `json:"pids"`
	Outputs   []string `json:"outputs"`
	Problems  []string `json:"problems,omitempty"`
}

func writeJSONSummary(w io.Writer, res *options.Result) {
	p := res.Profile
	if p == nil { // nothing has connected
		p = &export.Profile{}
	}
	s := jsonSummary{Recording: export.NewRecording("seedwalk-recording", p),
		ExitCode: res.ExitCode, Connected: res.PIDs}
	for _, o := range res.Written {
		s.Outputs = append(s.Outputs, o.Path)
		if o.Err != nil {
			s.Problems = append(s.Problems, o.Output.Path+": "+o.Err.Error())
		}
	}
	json.NewEncoder(w).Encode(s) // text and numbers: can be encoded
}

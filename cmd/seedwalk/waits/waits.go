// Package waits has the command that reports where a program waits.
//
// Sources: dotnet/diagnostics documentation/design-docs/ipc-protocol.md.
//
// Glossary. A wait is a pair of events of the runtime, or a blocked call.
//
// Strategy. A runtime that the command starts waits at a diagnostics port until the session of
// events is there.
//
// Known gaps: one process is watched at a time.
package waits

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/output"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
)

const Help = `Usage: seedwalk waits [flags] FILE.nettrace
       seedwalk waits [flags] --pid PID
       seedwalk waits [flags] -- COMMAND ARGS

Reports what threads waited for (locks, wait handles, Monitor.Wait), for how long, how often,
where in the code, and which thread held the lock. The input is a trace, a running process until
Ctrl-C or for --duration, or a command from its start (.NET 5 and later). Without --output, the
command's standard output goes to the standard error, so that the report is alone on the standard
output. .NET Core 3.0 and later report locks, .NET 9 and later also wait handles and tasks.

  --format NAME      text (default), html, pprof, folded, json, csv
  --output FILE      where the report goes (default: the standard output); its ending chooses
                     the format unless --format does
  --min-duration D   only waits of at least this length, such as 10ms
  --thread ID        only this thread; repeat it or separate with commas
  --since D          only waits that ended later than D after the start of the trace, such as 1.5s
  --until D          only waits that began before D
  --top N            number of longest waits to list in text (default 20)
  --idle             in text, also show the waits of idle threads of the thread pool, and of
                     threads that start
  --duration D       live: stop after D; a command runs on to its end
  --follow           live: print a line for each wait when it ends (with --format json: a line of
                     JSON); the report goes to --output only
  --buffer MB        live: memory in the process for events not read yet (default 256)
  --keep FILE        live: keep the raw trace, and beside it FILE.maps, which later names the
                     addresses of native code

Every output counts the lost events. If events of a thread were lost, its wait is shown as
unreliable and is in no sum. ">" marks a lower bound: the wait began before the trace, or was
still open at its end. The runtime does not report await, Thread.Sleep, WaitHandle.SignalAndWait,
or uncontended waits. The runtime knows the owners of locks, but not those of mutexes, events, and
semaphores.

Examples:
  seedwalk waits app.nettrace
  seedwalk waits --pid 4711 --duration 30s --output waits.html
  seedwalk waits --pid 4711 --follow --min-duration 100ms
  seedwalk waits --format pprof --output waits.pb.gz -- dotnet app.dll

Exit code: 0 success; 1 no wait could be seen (the trace has no wait events, or the runtime reports
none), or the trace is damaged, cut off, or lost events, or the connection to the process failed:
what could be read is shown; 2 wrong usage; 3 the file could not be opened, the process could not
be reached, or the report could not be written. With a command: the command's own; 125 it could
not be traced, 126 it could not be run, 127 it was not found.
`

// waitsFlags are the flags of waits.
type waitsFlags struct {
	pid, top, buffer int
	threads          cli.List
	format           string
	output, keep     string
	duration         time.Duration
	idle, follow     bool
	filter           waits.Filter
	file             string
	command          []string
	write            report.Format
}

func Run(args []string) int {
	var f waitsFlags
	args, f.command = cutCommand(args)
	set := flag.NewFlagSet("waits", flag.ContinueOnError)
	set.Var((*cli.PID)(&f.pid), "pid", "")
	set.IntVar(&f.top, "top", 20, "")
	set.IntVar(&f.buffer, "buffer", 256, "")
	set.Var(&f.threads, "thread", "")
	set.StringVar(&f.format, "format", "", "")
	set.StringVar(&f.output, "output", "-", "")
	set.StringVar(&f.output, "o", "-", "")
	set.StringVar(&f.keep, "keep", "", "")
	set.Var((*cli.Seconds)(&f.duration), "duration", "")
	set.Var((*cli.Seconds)(&f.filter.Min), "min-duration", "")
	set.Var((*cli.Seconds)(&f.filter.Since), "since", "")
	set.Var((*cli.Seconds)(&f.filter.Until), "until", "")
	set.BoolVar(&f.idle, "idle", false, "")
	set.BoolVar(&f.follow, "follow", false, "")
	files, code, done := cli.ParseMixed(set, Help, args)
	if done {
		return code
	}
	if len(files) > 1 {
		return cli.Usage("waits", fmt.Sprintf("one file at a time: %s or %s", files[0], files[1]))
	}
	f.file = strings.Join(files, "")
	if err := f.check(); err != nil {
		return cli.Usage("waits", err)
	}
	return f.run()
}

// cutCommand parts the arguments at "--".
func cutCommand(args []string) (flags, command []string) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

func (f *waitsFlags) check() error {
	sources := 0
	for _, is := range []bool{f.file != "", f.pid != 0, len(f.command) > 0} {
		if is {
			sources++
		}
	}
	live := f.file == ""
	switch {
	case sources != 1:
		return errors.New("name a trace, --pid, or a command after --, and only one of them")
	case f.duration < 0 || f.filter.Min < 0 || f.filter.Since < 0 || f.filter.Until < 0:
		return errors.New("--duration, --min-duration, --since, and --until cannot be negative")
	case f.top < 1:
		return errors.New("--top must be at least 1")
	case f.filter.Until > 0 && f.filter.Until < f.filter.Since:
		return errors.New("--until is before --since")
	case f.buffer < 1 || f.buffer > 4096:
		return errors.New("--buffer must be 1 to 4096 (MB)")
	case !live && (f.follow || f.keep != "" || f.duration > 0):
		return errors.New("--follow, --keep, and --duration need a running process, not a file")
	}
	for _, t := range f.threads {
		id, err := strconv.ParseUint(t, 10, 64)
		if err != nil {
			return fmt.Errorf("--thread %s: not a number", t)
		}
		f.filter.Threads = append(f.filter.Threads, id)
	}
	return f.chooseFormat()
}

func (f *waitsFlags) chooseFormat() error {
	var known bool
	switch {
	case f.format != "":
		f.write, known = report.ByName(f.format)
	case f.output != "-":
		f.write, known = report.ByPath(f.output)
	default:
		f.write, known = report.ByName("text")
	}
	if !known {
		var names []string
		for _, r := range report.Formats() {
			names = append(names, r.Name)
		}
		what := "no format " + strconv.Quote(f.format)
		if f.format == "" {
			what = "the name " + f.output + " does not say which format is wanted"
		}
		return fmt.Errorf("%s; --format is one of %s", what, strings.Join(names, ", "))
	}
	if f.follow && f.output == "-" && f.write.Name != "text" && f.write.Name != "json" {
		return errors.New("--follow prints text or JSON lines; give the report an --output")
	}
	if f.write.Name == "text" {
		f.write.Write = f.text
	}
	return nil
}

func (f *waitsFlags) text(w io.Writer, a *waits.Analysis) error {
	opt := report.TextOptions{Top: f.top, Idle: f.idle}
	if f.output == "-" {
		if opt.Width = cli.TextOptions(os.Stdout).Width; opt.Width == 0 {
			opt.Width = 200 // no terminal
		}
	}
	return report.WriteText(w, a, opt)
}

func (f *waitsFlags) run() int {
	a := waits.New()
	a.Filter = f.filter
	switch {
	case f.file != "":
		return f.readFile(a)
	case f.pid != 0:
		return f.attach(a)
	}
	return f.launch(a)
}

func waitsSay(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "seedwalk waits: "+format+"\n", args...)
}

func (f *waitsFlags) readFile(a *waits.Analysis) int {
	in, err := os.Open(f.file)
	if err == nil {
		var info os.FileInfo
		if info, err = in.Stat(); err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory", f.file)
		}
	}
	if err != nil {
		return cli.Fail("waits", cli.ExitUnreadable, err)
	}
	defer in.Close()
	if maps, err := os.Open(f.file + ".maps"); err == nil {
		session.ReadMaps(a.Names, maps, filepath.Dir(f.file))
		maps.Close()
	}
	a.Read(in) // finish reports the error
	a.Finish()
	return f.finish(a, f.file)
}

// finish writes the report and says what is partial.
func (f *waitsFlags) finish(a *waits.Analysis, name string) int {
	partial := a.PartialLine()
	if partial != "" {
		waitsSay("%s: %s", name, partial)
	}
	if a.Trace.Frequency != 0 && !(f.follow && f.output == "-") {
		if err := f.report(a); err != nil {
			return cli.Fail("waits", cli.ExitUnreadable, err)
		}
	}
	inReport := f.write.Name == "text" && f.output == "-" && !f.follow
	if a.Blind() && partial == "" && !inReport {
		waitsSay("%s: %s", name, a.Unseen())
	}
	if partial != "" || a.Blind() {
		return cli.ExitWrong
	}
	return cli.ExitOK
}

func (f *waitsFlags) report(a *waits.Analysis) error {
	if f.output == "-" {
		err := f.write.Write(cli.Stdout, a)
		if errors.Is(err, syscall.EPIPE) { // the reader has enough
			return nil
		}
		return err
	}
	if err := output.New().Write(f.output,
		func(w io.Writer) error { return f.write.Write(w, a) }); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "wrote %s\n", cli.ShortPath(f.output))
	return nil
}

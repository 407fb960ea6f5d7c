package builder

import (
	"flag"
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
)

const CaptureHelp = `Usage: seedwalk capture [flags] -- COMMAND ARGS
       seedwalk capture [flags] --pid PID

Keeps stacks of a running program in a file, to walk them again: as input of a measurement, or to
report a wrong walk. Each thread of the process and of its children is stopped while its registers
and stack are copied. A thread that has not moved since its last copy is not copied again. Any
program works, .NET or not. Linux on x86-64.

  --pid PID          take stacks of a running process and of the processes that it starts
  --rate HZ          polls per second, 0.1 to 1000 (default 50)
  --duration D       stop after D, such as 30s or 2m; the command runs on
  --stacks N         stop after this many stacks (default 1500)
  --stack-bytes N    copy at most this much of each stack (default 262144)
  --output FILE      where the stacks go (default seedwalk.stacks)
  --quiet            print no summary

The file names images by path and build ID but does not contain them, so the same builds are
needed to read it. The strings of the command line and of the environment are blanked. All other
stack contents are in the file: keep it as private as a core.
"go doc github.com/seedwalk/seedwalk/stack/capture" describes the format.

Examples:
  seedwalk capture -- g++ -O2 -c big.cc
  seedwalk capture --pid 4711 --duration 10s --output hot.stacks

Exit code: the command's own; 125 no stack could be taken or kept, 126 the command could not be
run, 127 it was not found, 2 wrong usage; with --pid 0 or 125.
`

// captureFlags are the flags of capture.
type captureFlags struct {
	pid      int
	rate     float64
	duration time.Duration
	stacks   int
	bytes    int
	output   string
	quiet    bool
	command  []string
}

func Capture(args []string) int {
	var f captureFlags
	set := flag.NewFlagSet("capture", flag.ContinueOnError)
	set.Var((*cli.PID)(&f.pid), "pid", "")
	set.Float64Var(&f.rate, "rate", 50, "")
	set.Var((*cli.Seconds)(&f.duration), "duration", "")
	set.IntVar(&f.stacks, "stacks", 1500, "")
	set.IntVar(&f.bytes, "stack-bytes", 256<<10, "")
	set.StringVar(&f.output, "output", "seedwalk.stacks", "")
	set.BoolVar(&f.quiet, "quiet", false, "")
	if code, done := cli.Parse(set, CaptureHelp, args); done {
		return code
	}
	f.command = set.Args()
	if err := f.check(); err != nil {
		return cli.Usage("capture", err)
	}
	return f.run()
}

func (f *captureFlags) check() error {
	switch {
	case f.pid < 0:
		return fmt.Errorf("--pid %d: not a process ID", f.pid)
	case (f.pid > 0) == (len(f.command) > 0):
		return fmt.Errorf("name either a command or --pid")
	case !(f.rate >= 0.1 && f.rate <= 1000):
		return fmt.Errorf("--rate %v is out of range: choose 0.1 to 1000", f.rate)
	case f.stacks < 1 || f.stacks > 1<<20:
		return fmt.Errorf("--stacks %d is out of range: choose 1 to 1048576", f.stacks)
	case f.bytes < 4096 || f.bytes > 64<<20:
		return fmt.Errorf("--stack-bytes %d is out of range: choose 4096 to 67108864", f.bytes)
	}
	return nil
}

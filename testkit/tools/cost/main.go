// Command cost measures how much sampling slows programs down. The programs run without an
// end and count their units of work. seedwalk is attached to a program and detached many
// times, at each rate in turn. After seedwalk has settled, a window of some seconds is
// measured. Each window is compared with the windows before and after it, in which nothing
// was attached: a change of the machine's speed affects all three.
//
// The command prints the median of these differences and its confidence interval. Then it
// prints each goal with a verdict, but only if the whole interval is on one side of the
// goal's limit. The rows named "nothing" compare windows in which nothing was attached, and
// so show the machine's own noise.
//
//	go run ./testkit/tools/cost -only server -each 60s
//	go run ./testkit/tools/cost -client -rounds 5
//
// The costs of attaching and detaching occur once per recording, and are printed separately.
// "tool" is the processor time of seedwalk itself, in shares of one core. The snapshot mode
// cannot be attached, so whole processes are run with it and without it.
package main

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type options struct {
	root    string
	runtime string
	rounds  int
	scale   float64
	only    string
	window  time.Duration
	each    time.Duration

	client   bool
	profiler string // the example profiler of the client library, built for -client
}

// program is one of Cost.cs and how much it does: some seconds on a machine of today.
type program struct {
	name   string
	amount int
}

var programs = []program{{"cpu", 14000}, {"allocate", 40000}, {"server", 100000}}

// idleRounds is small, because processor time varies less than wall time.
const idleRounds = 2

// setup is how a program runs.
type setup struct {
	way  string // mode of the recording; "" = without the tool
	rate int
}

// rates are the rates measured in the probe mode.
var rates = []int{100, 1000}

// setups of whole processes.
var setups = []setup{{}, {"snapshot", 100}, {"snapshot", 1000}}

func (s setup) String() string {
	if s.way == "" {
		return "alone"
	}
	return fmt.Sprintf("%s %d Hz", s.way, s.rate)
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the `folder` of the checkout, built with make build samples")
	flag.StringVar(&o.runtime, "runtime", ".cache/dotnet-9.0.5/package/dist", "the `folder` of the runtime")
	flag.DurationVar(&o.window, "window", 2*time.Second, "of a measurement")
	flag.DurationVar(&o.each, "each", 130*time.Second,
		"the time of each program, with the probe and alone in turn")
	flag.IntVar(&o.rounds, "rounds", 2,
		"how often a program runs from start to end with the snapshot way, and alone")
	flag.Float64Var(&o.scale, "scale", 1, "more or less work in those")
	flag.StringVar(&o.only, "only", "", "programs, separated by commas; all if empty")
	flag.BoolVar(&o.client, "client", false,
		"compare whole processes: the client library at 100 Hz, a recording at 100 Hz, and nothing")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	if o.client {
		return o.clients()
	}
	if err := o.size(); err != nil {
		return err
	}
	var goals []goal
	var failed error
	for _, p := range programs {
		if o.wanted(p.name) {
			g, err := o.program(p)
			goals, failed = append(goals, g...), errors.Join(failed, err)
		}
	}
	if o.wanted("idle") {
		g, err := o.idle()
		goals, failed = append(goals, g...), errors.Join(failed, err)
	}
	verdicts(goals)
	return failed
}

// program measures and judges a program, and also prints its runs in the snapshot mode.
func (o *options) program(p program) ([]goal, error) {
	m, err := o.steadily(p)
	if err != nil {
		return nil, err
	}
	m.print(p, o.window.Seconds())
	goals := judge(p, m)
	rows, err := o.rows(p, setups)
	if err != nil || len(rows[0]) == 0 {
		return goals, err
	}
	printWhole(p, rows)
	return goals, nil
}

func (o *options) wanted(name string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+name+",")
}

// rows measures rounds of a program from its start to its end.
func (o *options) rows(p program, setups []setup) ([]series, error) {
	rows := make([]series, len(setups))
	for round := range o.rounds {
		for k := range setups {
			i := (k + round) % len(setups)
			r, err := o.measure(p, setups[i], nil)
			if err != nil {
				return nil, fmt.Errorf("%s, %v: %w", p.name, setups[i], err)
			}
			rows[i] = append(rows[i], r)
		}
	}
	return rows, nil
}

// size prints the size of seedwalk's code and data in a target.
func (o *options) size() error {
	path := filepath.Join(o.root, "out", "bin", "libseedwalk_probe.so")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return err
	}
	var names []string
	for _, s := range symbols {
		switch {
		case s.Section != elf.SHN_UNDEF:
		case elf.ST_BIND(s.Info) == elf.STB_WEAK:
			names = append(names, s.Name+" (weak)")
		default:
			names = append(names, s.Name)
		}
	}
	fmt.Printf("probe: %d bytes, %d libraries needed, symbols asked for: %s\n", info.Size(),
		len(needed), strings.Join(names, ", "))
	return nil
}

// Command cost measures what sampling costs a program: fixed work, without the tool
// and with it in each way and at each rate, in turn and each round in another order, so
// that what slows one minute slows all. It prints medians over the rounds with their
// spread, then each goal with what was reached and a verdict.
//
//	go run ./internal/tools/cost -rounds 5
//
// "throughput lost" is of wall time, by the best round of each setup: what else runs on
// the machine only ever adds. The program runs alone twice a round; how far those two
// are apart is the noise, and a goal that it hides is not judged. "processor time" is of
// the program's own; "tool" is what seedwalk itself used, in shares of one core.
package main

import (
	"debug/elf"
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
	budget  time.Duration
	began   time.Time
}

// program is one of Cost.cs and how much it does: some seconds on a machine of today.
type program struct {
	name   string
	amount int
}

var programs = []program{{"cpu", 14000}, {"allocate", 40000}, {"server", 100000}}

// idleRounds are few: processor time is steadier than wall time.
const idleRounds = 2

// setup is how a program runs.
type setup struct {
	way  string // "" is without the tool
	rate int
}

// The program is alone twice, for the noise.
var setups = []setup{{}, {}, {"probe", 100}, {"probe", 1000}, {"snapshot", 100}, {"snapshot", 1000}}

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
	flag.IntVar(&o.rounds, "rounds", 5, "how often each way runs")
	flag.Float64Var(&o.scale, "scale", 1, "more or less work")
	flag.StringVar(&o.only, "only", "", "programs, separated by commas; all if empty")
	flag.DurationVar(&o.budget, "budget", 6*time.Minute, "no more rounds begin after this time; idle threads take two minutes more")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	if err := o.size(); err != nil {
		return err
	}
	o.began = time.Now()
	var goals []goal
	for _, p := range programs {
		if !o.wanted(p.name) {
			continue
		}
		rows, err := o.rows(p)
		if err != nil {
			return err
		}
		print(p, rows)
		goals = append(goals, judge(p, rows)...)
	}
	if o.wanted("idle") {
		g, err := o.idle()
		if err != nil {
			return err
		}
		goals = append(goals, g...)
	}
	verdicts(goals)
	return nil
}

func (o *options) wanted(name string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+name+",")
}

// rows are the rounds of a program, as many as there is time for.
func (o *options) rows(p program) ([]series, error) {
	rows := make([]series, len(setups))
	for round := range o.rounds {
		if round > 1 && time.Since(o.began) > o.budget {
			fmt.Printf("\n%s: %d rounds of %d, for lack of time\n", p.name, round, o.rounds)
			break
		}
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

// size prints what of ours is in a target.
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
	fmt.Printf("probe: %d bytes, %d libraries needed, symbols asked for: %s\n", info.Size(), len(needed), strings.Join(names, ", "))
	return nil
}

// Command cost measures what sampling costs a program: fixed work, without the tool
// and with it in each way and at each rate, in turn, so that what slows one minute
// slows all. It prints medians over the rounds with their spread.
//
//	go run ./internal/tools/cost -rounds 7
//
// "throughput lost" is of wall time and wants a quiet machine. "processor time" is of
// the program's own, which a busy machine disturbs little; "tool" is what seedwalk
// itself used, in shares of one core.
package main

import (
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

type options struct {
	root    string
	runtime string
	rounds  int
	scale   float64
	only    string
}

// program is one of Cost.cs and how much it does: some seconds on a machine of today.
type program struct {
	name   string
	amount int
}

var programs = []program{{"cpu", 20000}, {"allocate", 30000}, {"server", 60000}, {"idle", 5000}}

// setup is how a program runs.
type setup struct {
	way  string // "" is without the tool
	rate int
}

var setups = []setup{{}, {"probe", 100}, {"probe", 1000}, {"snapshot", 100}, {"snapshot", 1000}}

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
	for _, p := range programs {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+p.name+",") {
			continue
		}
		rows := make([]series, len(setups))
		for range o.rounds {
			for i, s := range setups {
				r, err := o.measure(p, s)
				if err != nil {
					return fmt.Errorf("%s, %v: %w", p.name, s, err)
				}
				rows[i] = append(rows[i], r)
			}
		}
		print(p, rows)
	}
	return nil
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

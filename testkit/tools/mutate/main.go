// Command mutate (`make mutate`) puts deliberate faults into seedwalk's sources, one by one,
// and shows which test catches each. The faults are in the code of snapshots, seeds, and
// merging, in the unwinder, and in its readers (elf, cfi, pe). Others are in the probe, in
// profiler/host, in capi, and in the engine (sample/outside, sample/sampler).
//
// Sources: the rules of package sim/rules warn of some of these faults. The others make a
// condition of these packages wrong.
//
// Glossary. A *fault* is a change of a few words in one file. It is *caught* if a
// test fails that passes without it; one that no test notices *survives*. A
// *step* is a run of some of the tests.
//
// Strategy. The tree is never touched. A fault is put into a copy of the tree, so that tests
// which compile C or read sources see the fault too. Every step first runs once without a
// fault, and must pass. Its time bounds the runs with a fault, so a fault that makes the tests
// hang counts as caught. For each fault, the steps run from the cheapest to the dearest until
// one fails. The words that a fault replaces must occur exactly once in the file, and the
// result must compile. Otherwise the command fails, because the list no longer fits the code.
//
// Known gaps: no fault is in package clr/contract, because simulated CLRs use the rows of
// package image instead.
//
// The file testdata/caught.txt has a row for each fault that was tried: the test that caught it, or why it
// survives. There, "open" means that a test is missing. -list prints the rows, -keep updates them.
//
//	go run ./testkit/tools/mutate [-only NAME] [-by "PACKAGE FLAG ..."] [-list] [-keep] [-jobs N]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
)

func main() {
	only := flag.String("only", ".*", "apply only faults whose whole name this regular expression matches")
	list := flag.Bool("list", false, "list the faults and apply none")
	keeps := flag.Bool("keep", false, "write what caught each fault into "+tableFile)
	by := flag.String("by", "", "try these arguments of go test instead of each fault's own tests")
	jobs := flag.Int("jobs", 2, "faults tried at a time")
	flag.Parse()
	ok, err := true, error(nil)
	if *list {
		err = printList()
	} else {
		ok, err = check(*only, *by, *jobs, *keeps)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// check applies the faults and prints the table.
func check(only, by string, jobs int, keeps bool) (ok bool, err error) {
	root, err := moduleroot.Find()
	if err != nil {
		return false, err
	}
	name, err := regexp.Compile("^(?:" + only + ")$")
	if err != nil {
		return false, err
	}
	var faults []Fault
	var other []*Step
	if f := strings.Fields(by); len(f) > 0 {
		other = []*Step{{f[0], f[1:]}}
	}
	for _, f := range Faults() {
		if other != nil {
			f.By = other
		}
		if name.MatchString(f.Name) {
			faults = append(faults, f)
		}
	}
	if len(faults) == 0 {
		return false, fmt.Errorf("no fault is called %q; -list lists them", only)
	}
	r := &runner{root: root}
	r.ctx, r.stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer r.stop()
	defer r.close()
	if err := r.copies(max(jobs, 1)); err != nil {
		return false, err
	}
	if err := r.baseline(faults); err != nil {
		return false, err
	}
	results := r.all(faults, jobs, func(res Result) { fmt.Println(res) })
	caught := 0
	for _, res := range results {
		if res.Caught {
			caught++
		}
	}
	fmt.Printf("%d of %d faults caught\n", caught, len(results))
	if keeps {
		err = keep(root, results)
	}
	return caught == len(results), err
}

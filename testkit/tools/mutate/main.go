// Command mutate (`make mutate`) changes seedwalk's sources at random places, one at a time, and
// shows which changes no test notices.
//
// Sources: mutation testing as in R. A. DeMillo, R. J. Lipton, F. G. Sayward, "Hints on Test Data
// Selection" (1978). The operators are the usual ones of imperative languages.
//
// Glossary. An *operator* is a kind of change, such as a negated condition. A *mutant* is the source
// with one change. It is *caught* if a test fails that passes without the change. A mutant that no test
// notices *survives*. An *equivalent* mutant behaves like the source, so no test can catch it.
//
// Strategy. For Go, the operators read the syntax tree, and a mutant that go/types refuses is not run. For C,
// they are regular expressions on lines. Tests read sources and compile C, so each mutant is written into a
// copy of the tree, and the tree itself is never touched. All tests first run once without a change,
// and must pass. Their time bounds the runs of mutants: a mutant that makes the tests hang is caught.
// The same seed and the same sources give the same mutants.
//
// Known gaps: equivalent mutants count as survivors. A person must judge each. In C, a change in code
// that the tests do not compile survives too.
//
//	go run ./testkit/tools/mutate [-packages LIST] [-n N] [-seed N] [-jobs N]
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
)

// dependents are the tests of a package that are in other packages: arguments of go test, cheapest first.
var dependents = map[string][]string{
	"cfi":              {"./unwind/amd64"},
	"clr/managed":      {"./stack/walk", "./sim"},
	"context":          {"./stack/seed", "./sim"},
	"pe/amd64":         {"./pe", "./unwind/amd64"},
	"pe/arm64":         {"./pe", "./unwind/arm64"},
	"profiler/host":    {"./sim/native"},
	"sample/probe/src": {"./sample/probe", "./sim/native"},
	"sample/sampler":   {"./sample/agent", "./sample/outside"},
	"stack/merge":      {"./sim", "./sim/worlds -run ^TestWorlds$ -worlds 300", "./fuzz -run ^FuzzMerge$"},
	"stack/seed":       {"./stack/snapshot", "./sim", "./fuzz -run ^FuzzSeed$"},
	"stack/snapshot":   {"./sim", keptRules, "./sim/worlds -run ^TestWorlds$ -worlds 300"},
	"stack/walk":       {"./sim"},
	"unwind/amd64":     {"./testkit/walktest", "./stack/walk"},
	"unwind/arm64":     {"./testkit/walktest", "./stack/walk"},
}

// keptRules are the rules of the simulator that are quick to explore.
const keptRules = "./sim/rules -short -run " +
	"^TestKept$/^(priming|thread-destroyed|collector-wait|adjusted-seed|redirected-target|resume-runtime)$/^amd64$"

const defaultPackages = "cfi,elf,pe,pe/amd64,pe/arm64,unwind/amd64,unwind/arm64,clr/managed,stack/seed,stack/merge," +
	"stack/snapshot,stack/walk,sample/sampler,sample/probe,sample/probe/src,profiler/host,capi"

func main() {
	packages := flag.String("packages", defaultPackages, "folders to change, with commas")
	n := flag.Int("n", 30, "mutants of each package; 0: all of them")
	seed := flag.Uint64("seed", uint64(time.Now().Unix()), "what chooses the mutants")
	jobs := flag.Int("jobs", 2, "mutants tried at a time")
	flag.Parse()
	if err := run(strings.Split(*packages, ","), *n, *seed, max(*jobs, 1)); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(packages []string, n int, seed uint64, jobs int) error {
	root, err := moduleroot.Find()
	if err != nil {
		return err
	}
	r := &runner{root: root, limit: map[string]time.Duration{}}
	r.ctx, r.stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer r.stop()
	defer r.close()
	if err := r.copies(jobs); err != nil {
		return err
	}
	fmt.Printf("seed %d\n", seed)
	var rates []string
	for _, p := range packages {
		p = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(p)), "./")
		rate, err := r.measure(p, n, seed, jobs)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		rates = append(rates, rate)
	}
	fmt.Printf("\n%s\n", strings.Join(rates, "\n"))
	return nil
}

// steps are the runs of tests for a package: its own, then its dependents.
func steps(pkg string) []string {
	if strings.HasSuffix(pkg, "/src") { // C that the folder above builds
		return dependents[pkg]
	}
	return append([]string{"./" + pkg}, dependents[pkg]...)
}

// measure tries n mutants of a package, prints those that survive, and returns a line with the rate.
func (r *runner) measure(pkg string, n int, seed uint64, jobs int) (string, error) {
	all, check, err := changes(r.root, pkg)
	if err != nil {
		return "", err
	}
	if err := r.baseline(steps(pkg)); err != nil {
		return "", err
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if n == 0 {
		n = len(all)
	}
	fmt.Printf("\n%s: %d of %d changes\n", pkg, min(n, len(all)), len(all))
	count := map[outcome]int{}
	r.try(all, check, steps(pkg), n, jobs, func(c *change, o outcome, by string) {
		if count[o]++; o == invalid && by == "" {
			return
		}
		by, _, _ = strings.Cut(by, "\n")
		fmt.Printf("%-9s %s\n", o, c.line(by))
		if o == survived {
			fmt.Print(c.diff())
		}
	})
	if err := r.ctx.Err(); err != nil {
		return "", err
	}
	tried := count[caught] + count[survived]
	return fmt.Sprintf("%-20s %4d mutants, %4d caught, %3d survived (%.0f %% caught), %d did not compile", pkg,
		tried, count[caught], count[survived],
		100*float64(count[caught])/float64(max(tried, 1)), count[invalid]), nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Step is a run of some tests of one package.
type Step struct {
	Pkg  string
	Args []string // of go test
}

// The tests of the simulator, cheapest first.
var (
	// asked tries every answer of a CLR, and looks at recorded captures.
	asked = &Step{"./sim", nil}
	// rules are the rules kept, in every order of steps within small bounds.
	rules = &Step{"./sim/rules",
		[]string{"-short", "-run",
			"^TestKept$/^(priming|thread-destroyed|collector-wait|adjusted-seed|redirected-target|resume-runtime)$/^amd64$"}}
	// random are large worlds.
	random = &Step{"./sim/worlds", []string{"-run", "^TestWorlds$", "-worlds", "300"}}
	// more are enough of them for what is rare.
	more = &Step{"./sim/worlds", []string{"-run", "^TestWorlds$", "-worlds", "3000"}}
	// inputs are what the fuzzers start from.
	inputs = &Step{"./fuzz", []string{"-run", "^(FuzzSeed|FuzzMerge|FuzzProtocol)$"}}
)

// Result is what became of a fault.
type Result struct {
	Name    string
	Caught  bool
	By      string // package and first failing test; else why it was not caught
	Seconds float64
}

func (r Result) String() string { return fmt.Sprintf("%-28s %6.1f s  %s", r.Name, r.Seconds, r.row()) }

// Limits of a run. A hang counts only if the sound run takes a small part of the
// time it was given.
const (
	leastLimit = 20 * time.Second
	limitTimes = 8
	buildLimit = 8 * time.Minute // for compiler, linker and tests together
)

type runner struct {
	ctx   context.Context // ends at an interrupt, or if a copy is spoiled
	stop  func()
	root  string
	dir   string      // of the copies
	trees chan string // copies of root that no job uses, one for each job
	limit map[*Step]time.Duration
}

// copies makes a copy of the tree for each job. What is fetched or built is shared, and so are the vectors
// beside the tree.
func (r *runner) copies(jobs int) (err error) {
	if r.dir, err = os.MkdirTemp("", "mutate"); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(filepath.Dir(r.root), "shared"),
		filepath.Join(r.dir, "shared")); err != nil {
		return err
	}
	r.trees = make(chan string, jobs)
	for i := range jobs {
		tree := filepath.Join(r.dir, strconv.Itoa(i))
		if err := copyTree(tree, r.root); err != nil {
			return err
		}
		r.trees <- tree
	}
	return nil
}

func copyTree(to, from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.Name() == ".git":
		case e.Name() == ".cache" || e.Name() == "out":
			err = os.Symlink(src, dst)
		case e.IsDir():
			err = os.CopyFS(dst, os.DirFS(src))
		default:
			err = copyFile(dst, src)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

func (r *runner) close() {
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

// baseline runs every step that the faults need, once, without a fault.
func (r *runner) baseline(faults []Fault) (err error) {
	r.limit = map[*Step]time.Duration{}
	tree := <-r.trees
	defer func() { r.trees <- tree }()
	for i := range faults {
		for _, s := range faults[i].By {
			if _, done := r.limit[s]; done {
				continue
			}
			out, err := r.test(s, tree, 4*time.Minute)
			if err != nil {
				return fmt.Errorf("%s fails without a fault: %w\n%s", s.Pkg, err, out)
			}
			r.limit[s] = max(leastLimit, limitTimes*ran(out))
		}
	}
	return nil
}

var okLine = regexp.MustCompile(`(?m)^ok\s+\S+\s+([0-9.]+s)`)

// ran is how long the tests of an output took, without compiling them.
func ran(out string) time.Duration {
	if m := okLine.FindStringSubmatch(out); m != nil {
		d, _ := time.ParseDuration(m[1])
		return d
	}
	return time.Minute
}

// test runs a step in a copy of the tree. Without paths in what is compiled, all copies share the
// build cache.
func (r *runner) test(s *Step, tree string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, buildLimit)
	defer cancel()
	args := append([]string{"test", "-count=1", "-vet=off", "-trimpath", "-timeout",
		limit.String(), s.Pkg}, s.Args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	switch {
	case r.ctx.Err() != nil:
		err = r.ctx.Err()
	case ctx.Err() != nil:
		err = errors.New("compiling and running took longer than " + buildLimit.String())
	}
	return string(out), err
}

// all applies the faults, so many at a time; say gets each result when it is
// there, in the order of the list.
func (r *runner) all(faults []Fault, jobs int, say func(Result)) []Result {
	results := make([]Result, len(faults))
	done := make([]chan struct{}, len(faults))
	for i := range done {
		done[i] = make(chan struct{})
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(jobs, 1) {
		wg.Go(func() {
			for i := range next {
				results[i] = r.apply(&faults[i])
				close(done[i])
			}
		})
	}
	wg.Go(func() {
		for i := range faults {
			next <- i
		}
		close(next)
	})
	for i := range faults {
		<-done[i]
		say(results[i])
	}
	wg.Wait()
	return results
}

// apply tries the steps of one fault until a test fails.
func (r *runner) apply(f *Fault) (res Result) {
	start := time.Now()
	res = Result{Name: f.Name, By: noReason}
	defer func() { res.Seconds = time.Since(start).Seconds() }()
	if r.ctx.Err() != nil {
		res.By = "interrupted"
		return res
	}
	tree := <-r.trees
	defer func() { r.trees <- tree }()
	restore, err := f.put(tree)
	if err != nil {
		res.By = err.Error()
		return res
	}
	defer func() {
		if err := restore(); err != nil {
			res.By, res.Caught = err.Error(), false
			r.stop()
		}
	}()
	for _, s := range f.By {
		out, err := r.test(s, tree, r.limit[s])
		if err == nil {
			continue
		}
		if r.ctx.Err() != nil {
			res.By = "interrupted"
			break
		}
		name, caught := failure(out)
		res.By, res.Caught = strings.TrimPrefix(s.Pkg, "./")+" "+name, caught
		break
	}
	return res
}

var (
	noC       = regexp.MustCompile(`(?m)^.*\.[ch]:\d+:\d+: (?:fatal )?error: .*|^.*: undefined reference to .*`)
	failLine  = regexp.MustCompile(`(?m)^( *)--- FAIL: (\S+)`)
	panicLine = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)`)
	running   = regexp.MustCompile(`(?m)^\t\t?(Test\S+|Fuzz\S+) \(`)
)

// failure names the first failing test of an output. A fault that does not
// compile, also in C that a test builds, is no fault of the code, and is not caught.
func failure(out string) (name string, caught bool) {
	if line := noC.FindString(out); line != "" {
		return "it does not compile: " + strings.TrimSpace(line), false
	}
	if m := panicLine.FindStringSubmatch(out); m != nil && strings.HasPrefix(m[1], "test timed out") {
		if t := running.FindAllStringSubmatch(out, -1); t != nil {
			return t[len(t)-1][1] + " (it hangs)", true
		}
		return "(it hangs)", true
	}
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		if name != "" && m[1] == "" {
			break
		}
		if len(m[2]) > len(name) && strings.HasPrefix(m[2], name) {
			name = m[2]
		}
	}
	if m := panicLine.FindStringSubmatch(out); m != nil {
		return strings.TrimSpace(name + " (panic: " + m[1] + ")"), true
	}
	if name == "" {
		return "it does not run:\n" + out, false
	}
	return name, true
}

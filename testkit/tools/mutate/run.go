package main

import (
	"cmp"
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

// outcome is what became of a mutant.
type outcome string

const (
	caught   outcome = "caught"
	survived outcome = "SURVIVED"
	invalid  outcome = "invalid" // it does not compile, and another mutant takes its place
)

// Limits of a run. A hang counts only if the run without a change takes a small part of its time.
const (
	leastLimit = 20 * time.Second
	limitTimes = 8
	buildLimit = 8 * time.Minute // for compiler, linker, and tests together
)

type runner struct {
	ctx   context.Context // ends at an interrupt, or if a copy is spoiled
	stop  func()
	root  string
	dir   string                   // of the copies
	trees chan string              // copies of root that no job uses, one for each job
	limit map[string]time.Duration // of each run of tests
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
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	for _, e := range entries {
		if err != nil {
			return err
		}
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.Name() == ".git":
		case e.Name() == ".cache" || e.Name() == "out":
			err = os.Symlink(src, dst)
		case e.IsDir():
			err = os.CopyFS(dst, os.DirFS(src))
		default:
			var b []byte
			if b, err = os.ReadFile(src); err == nil {
				err = os.WriteFile(dst, b, 0o600)
			}
		}
	}
	return err
}

func (r *runner) close() {
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

// baseline runs the tests once without a change: they must pass, and their time bounds later runs.
func (r *runner) baseline(steps []string) error {
	tree := <-r.trees
	defer func() { r.trees <- tree }()
	for _, s := range steps {
		if r.limit[s] != 0 {
			continue
		}
		out, err := r.test(s, tree, 4*time.Minute)
		if err != nil {
			return fmt.Errorf("%s fails without a change: %w\n%s", s, err, out)
		}
		r.limit[s] = max(leastLimit, limitTimes*duration(out))
	}
	return nil
}

var okLine = regexp.MustCompile(`(?m)^ok\s+\S+\s+([0-9.]+s)`)

// duration is how long the tests of an output took, without compiling them.
func duration(out string) time.Duration {
	if m := okLine.FindStringSubmatch(out); m != nil {
		d, _ := time.ParseDuration(m[1])
		return d
	}
	return time.Minute
}

// test runs a step in a copy of the tree. Without paths in what is compiled, all copies share the build
// cache. It leaves out the tests that compare sources with committed files: they would catch every change.
func (r *runner) test(step, tree string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, buildLimit)
	defer cancel()
	args := append([]string{"test", "-count=1", "-vet=off", "-trimpath", "-failfast",
		"-skip", "^TestCommittedProbe", "-timeout", limit.String()}, strings.Fields(step)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = tree
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = cmp.Or(r.ctx.Err(), errors.New("compiling and running took longer than "+buildLimit.String()))
	}
	return string(out), err
}

// try tries changes until n mutants have compiled, some at a time, and says what became of each.
func (r *runner) try(all []change, check func(*change) error, steps []string, n, jobs int,
	say func(*change, outcome, string)) {
	var wg sync.WaitGroup
	var mu sync.Mutex // of next, n, and say; go/types is not safe for two jobs
	next := 0
	draw := func() (c *change) {
		mu.Lock()
		defer mu.Unlock()
		for n > 0 && next < len(all) && r.ctx.Err() == nil {
			c, next = &all[next], next+1
			if err := check(c); err == nil {
				n--
				return c
			}
			say(c, invalid, "")
		}
		return nil
	}
	for range jobs {
		wg.Go(func() {
			for c := draw(); c != nil; c = draw() {
				o, by := r.apply(c, steps)
				mu.Lock()
				if say(c, o, by); o == invalid {
					n++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// apply runs the tests of a mutant until one fails.
func (r *runner) apply(c *change, steps []string) (o outcome, by string) {
	tree := <-r.trees
	defer func() { r.trees <- tree }()
	name := filepath.Join(tree, filepath.FromSlash(c.file))
	defer func() {
		if err := os.WriteFile(name, c.text, 0o600); err != nil {
			o, by = invalid, err.Error()
			r.stop()
		}
	}()
	if err := os.WriteFile(name, c.mutant(), 0o600); err != nil {
		return invalid, err.Error()
	}
	for _, s := range steps {
		out, err := r.test(s, tree, r.limit[s])
		if err == nil {
			continue
		}
		by, compiled := failure(out)
		if !compiled || r.ctx.Err() != nil {
			return invalid, by
		}
		pkg, _, _ := strings.Cut(strings.TrimPrefix(s, "./"), " ")
		return caught, pkg + " " + by
	}
	return survived, ""
}

var (
	noC       = regexp.MustCompile(`(?m)^.*\.[ch]:\d+:\d+: (?:fatal )?error: .*|^.*: undefined reference to .*`)
	failLine  = regexp.MustCompile(`(?m)^( *)--- FAIL: (\S+)`)
	panicLine = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)`)
	running   = regexp.MustCompile(`(?m)^\t\t?(Test\S+|Fuzz\S+) \(`)
)

// failure names the first failing test of an output. It reports whether the mutant compiled, also where a
// test builds C.
func failure(out string) (name string, compiled bool) {
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

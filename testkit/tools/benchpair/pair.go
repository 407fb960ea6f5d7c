package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// side is one checkout's test program of a package, and its fastest rounds.
type side struct {
	program, dir string
	best         map[string]float64 // ns by row
	order        []string
}

// pair is a package's two programs.
type pair struct {
	pkg      string
	old, new side
}

// build compiles a package's tests in both checkouts.
func (o *options) build(dir, pkg string) (*pair, error) {
	p := &pair{pkg: strings.TrimPrefix(pkg, "./")}
	for i, s := range []*side{&p.old, &p.new} {
		root := []string{o.base, o.head}[i]
		s.dir = filepath.Join(root, p.pkg)
		s.program = filepath.Join(dir, fmt.Sprintf("%s.%d.test", strings.ReplaceAll(p.pkg, "/", "."), i))
		s.best = map[string]float64{}
		cmd := exec.Command("go", "test", "-c", "-o", s.program, "./"+p.pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", s.dir, err, out)
		}
	}
	return p, nil
}

// rounds runs old and new in turn. They take turns to be first, because the first of two has
// colder caches.
func (p *pair) rounds(o *options, bench string) error {
	for i := range o.rounds {
		first, second := &p.old, &p.new
		if i%2 == 1 {
			first, second = second, first
		}
		for _, s := range []*side{first, second} {
			if err := s.round(o, bench); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d rounds of %s\n", p.pkg, o.rounds, bench)
	return nil
}

func (s *side) round(o *options, bench string) error {
	cmd := exec.Command(s.program, "-test.run", "^$", "-test.cpu", "1", "-test.bench", bench,
		"-test.benchtime", o.benchtime, "-test.count", strconv.Itoa(o.count))
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", s.program, s.dir, err, bytes.TrimSpace(out))
	}
	for _, r := range parse(out) {
		was, seen := s.best[r.name]
		if !seen {
			s.order = append(s.order, r.name)
		}
		if !seen || r.ns < was {
			s.best[r.name] = r.ns
		}
	}
	return nil
}

// table pairs the rows that both checkouts have, in the order of the new one.
func (p *pair) table() (t table) {
	for _, name := range p.new.order {
		was, ok := p.old.best[before(name)]
		if ok {
			t = append(t, row{pkg: p.pkg, name: name, old: was, new: p.new.best[name]})
		}
	}
	return t
}

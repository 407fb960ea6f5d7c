//go:build linux && amd64

// Package cworld runs C of the product under every order of its atomics: the same
// scheduler that explores the simulated worlds drives real C threads, one step at a
// time.
//
// Sources: GCC's manual, "Built-in Functions for Memory Model Aware Atomic Operations";
// package sim/sched.
//
// Glossary. A *world* is C of the test's: what each thread does with the product's
// functions. A *point* is where others may run.
//
// Strategy. The C is compiled as it stands, with a header before it that makes each
// atomic a step (harness.h). Every C thread waits for its scheduler's word at each
// step, over a socket; memory is the C program's own, or a file that both map.
//
// Known gaps: sequential consistency; plain loads and stores are no steps.
package cworld

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/must"
)

//go:embed src/harness.h
var header string

//go:embed src/harness.c
var harness string

const message = 64

// Program is a C program of several threads.
type Program struct {
	t       testing.TB
	ports   []*os.File
	running []bool // in its world_thread
	steps   int    // taken by any thread of this run
}

// Start compiles sources (world.c contains the world) and starts it with so many
// threads. The first of files is its descriptor behind the last thread's, and so on.
func Start(t testing.TB, sources map[string]string, threads int, files ...*os.File) *Program {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gcc: C is not run under every order of its steps")
	}
	dir := t.TempDir()
	for name, text := range sources {
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(dir, "harness.h"), header)
	write(t, filepath.Join(dir, "harness.c"), harness)
	exe := filepath.Join(dir, "world")
	world := exec.Command(cc, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-include",
		"harness.h", "-c", "world.c", "-o", "world.o")
	main := exec.Command(cc, "-O1", "-Wall", "-Wextra", "-Werror", "-o", exe,
		"harness.c", "world.o", "-lpthread")
	for _, c := range []*exec.Cmd{world, main} {
		c.Dir = dir
		out, err := c.CombinedOutput()
		must.True(t, err == nil, "%v: %v\n%s", c.Args, err, out)
	}
	p := &Program{t: t, running: make([]bool, threads)}
	cmd := exec.Command(exe, strconv.Itoa(threads))
	cmd.Stderr = os.Stderr
	for range threads {
		pair := must.Get(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))(t)
		p.ports = append(p.ports, os.NewFile(uintptr(pair[0]), "port"))
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(pair[1]), "thread"))
	}
	own := len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, files...)
	must.Do(t, cmd.Start())
	for _, f := range cmd.ExtraFiles[:own] {
		f.Close()
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		for _, f := range p.ports {
			f.Close()
		}
	})
	return p
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

// Reset ends what threads of the last run still do, and makes the memory as it was.
func (p *Program) Reset() {
	for i, running := range p.running {
		if running {
			p.send(i, 'x')
			p.end(i)
		}
	}
	p.send(0, 'r')
	p.end(0)
	p.steps = 0
}

// Run is the life of thread i, by the actor that stands for it.
func (p *Program) Run(a *sched.Actor, i int) {
	p.running[i] = true
	p.send(i, 'b')
	for {
		kind, what := p.receive(i)
		switch kind {
		case 'E':
			p.running[i] = false
			return
		case 'F':
			a.Fault("%s", what)
		case 'W':
			since := p.steps
			a.WaitUntil(what, func() bool { return p.steps > since })
		default:
			a.Yield("%s", what)
		}
		p.steps++
		p.send(i, 'g')
	}
}

// RunTo is Run of a thread that is interrupted for ever before its nth step.
func (p *Program) RunTo(a *sched.Actor, i, n int) {
	p.running[i] = true
	p.send(i, 'b')
	for range n - 1 {
		kind, what := p.receive(i)
		if kind == 'E' {
			p.running[i] = false
			return
		}
		a.Yield("%s", what)
		p.steps++
		p.send(i, 'g')
	}
	if kind, _ := p.receive(i); kind == 'E' {
		p.running[i] = false
	}
}

// Step is a step of another actor that changes memory of the program's.
func (p *Program) Step() { p.steps++ }

func (p *Program) end(i int) {
	for {
		if kind, _ := p.receive(i); kind == 'E' {
			p.running[i] = false
			return
		}
		p.send(i, 'x')
	}
}

func (p *Program) send(i int, c byte) {
	_, err := p.ports[i].Write([]byte{c})
	must.True(p.t, err == nil, "the C program has ended: %v", err)
}

func (p *Program) receive(i int) (kind byte, what string) {
	var b [message]byte
	for n := 0; n < len(b); {
		m, err := p.ports[i].Read(b[n:])
		must.True(p.t, err == nil, "the C program has ended: %v", err)
		n += m
	}
	return b[0], strings.TrimRight(string(b[1:]), "\x00")
}

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pty"
)

// terminal is a pseudo terminal with a program on it.
type terminal struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	cmd    *exec.Cmd
	text   chan string
	seen   strings.Builder
}

// onTerminal starts a program on a pseudo terminal of its own (pts(4)).
func onTerminal(t *testing.T, argv ...string) *terminal {
	t.Helper()
	master, slave := pty.Open(t, 40, 120)
	m := &terminal{t: t, master: master, slave: slave, cmd: exec.Command(argv[0], argv[1:]...),
		text: make(chan string, 1<<12)}
	m.cmd.Stdin, m.cmd.Stdout, m.cmd.Stderr = slave, slave, slave
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, m.cmd.Start())
	t.Cleanup(func() { m.cmd.Process.Kill(); slave.Close() })
	go func() {
		defer close(m.text)
		var b [4096]byte
		for {
			n, err := master.Read(b[:])
			if err != nil {
				return
			}
			m.text <- string(b[:n])
		}
	}()
	return m
}

// expect reads the terminal until it has received every text, in any order, since the last call.
func (m *terminal) expect(texts ...string) {
	m.t.Helper()
	limit := time.After(time.Minute)
	for {
		missing := ""
		for _, want := range texts {
			if !strings.Contains(m.seen.String(), want) {
				missing = want
			}
		}
		if missing == "" {
			m.seen.Reset()
			return
		}
		select {
		case s, ok := <-m.text:
			if m.seen.WriteString(s); !ok {
				m.t.Fatalf("the terminal ended before %q: %q", missing, m.seen.String())
			}
		case <-limit:
			text := m.seen.String()
			m.t.Fatalf("no %q in the end of %q", missing, text[max(0, len(text)-2000):])
		}
	}
}

// ended waits for the program's end and returns its exit code.
func (m *terminal) ended() int {
	m.t.Helper()
	late := time.AfterFunc(time.Minute, func() { m.cmd.Process.Kill() })
	defer late.Stop()
	m.cmd.Wait()
	return exitCode(m.cmd.ProcessState)
}

// mode is the terminal's mode.
func (m *terminal) mode() unix.Termios {
	m.t.Helper()
	mode := must.Get(unix.IoctlGetTermios(int(m.slave.Fd()), unix.TCGETS))(m.t)
	return *mode
}

// The live view shows functions, threads, types, and counters, reacts to its keys, and restores the terminal.
// If the terminal is closed, the view ends. The process continues to run.
func TestTop(t *testing.T) {
	p := demo(t)
	pid := p.id
	m := onTerminal(t, tool(t), "top", pid)
	before := m.mode()
	m.expect("\x1b[?1049h", "seedwalk top "+pid, "Demo.Fibonacci", "self*", "  thread",
		"allocated type", "pool queue")
	expect.True(t, m.mode() != before, "the terminal is not in raw mode")
	for _, key := range []struct{ key, shows string }{
		{" ", "PAUSED\x1b[K"}, {"t", "total*"}, {"s", "self*"}, {" ", "samples\x1b[K"}, {"t", "total*"},
	} {
		m.master.WriteString(key.key)
		m.expect(key.shows)
	}
	m.master.WriteString("q")
	m.expect("\x1b[?25h\x1b[?1049l")
	if code := m.ended(); code != 0 || m.mode() != before {
		t.Errorf("exit code %d, the terminal's mode was %+v and is %+v", code, before, m.mode())
	}
	gone := onTerminal(t, tool(t), "top", "--no-alloc", pid)
	gone.expect("Demo.Fibonacci")
	gone.slave.Close()
	gone.master.Close()
	gone.ended()
	expect.True(t, !gone.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(),
		"the tool did not end with its terminal")
	for name, end := range map[string]func(*terminal){
		"SIGHUP":  func(m *terminal) { m.cmd.Process.Signal(syscall.SIGHUP) },
		"SIGTERM": func(m *terminal) { m.cmd.Process.Signal(syscall.SIGTERM) },
		"Ctrl-C":  func(m *terminal) { m.master.WriteString("\x03") },
	} {
		screen := onTerminal(t, tool(t), "top", "--no-alloc", pid)
		before := screen.mode()
		screen.expect("Demo.Fibonacci")
		end(screen)
		screen.expect("\x1b[?25h\x1b[?1049l")
		code := screen.ended()
		expect.True(t, code == 0 && screen.mode() == before,
			"%s: exit code %d, the terminal's mode was %+v and is %+v", name, code, before, screen.mode())
	}
	if p.gone() { // only then is its error set
		t.Errorf("the process: %v", p.err)
	}
}

// topLine is a line of top --json.
type topLine struct {
	PID                           int
	CPU, Seconds                  float64
	Samples                       int64
	Functions, Threads, Allocated []struct {
		Name        string
		Self, Total float64
	}
	Counters map[string]float64
}

// accounted reports whether the CPU time of the threads, and that of the functions, is about the process's.
func (l *topLine) accounted() bool {
	threads, functions := 0.0, 0.0
	for _, row := range l.Threads {
		threads += row.Self
	}
	for _, row := range l.Functions {
		functions += row.Self
	}
	near := func(sum float64) bool { return sum >= l.CPU*0.5 && sum <= l.CPU*1.5+0.1 }
	return l.CPU >= 0.05 && near(threads) && near(functions)
}

// TestTopJSON: two of three lines, or more, account for the CPU time of their interval. On a loaded machine,
// samples may arrive in the next interval.
func TestTopJSON(t *testing.T) {
	r := seedwalk(t, "top", "--json", "--interval", "500ms", "--duration", "6s", demo(t).id)
	var lines []topLine
	for text := range strings.Lines(r.stdout) {
		var l topLine
		must.Do(t, json.Unmarshal([]byte(text), &l))
		lines = append(lines, l)
	}
	must.True(t, r.code == 0 && len(lines) >= 3, "exit code %d, %d lines\n%s", r.code, len(lines), r.stderr)
	good := 0
	for i := range lines {
		if lines[i].accounted() {
			good++
		}
	}
	l := lines[len(lines)-1]
	expect.Figures(t, good*3 >= len(lines)*2, "%d of %d lines account for the CPU time; the last: %+v", good,
		len(lines), l)
	_, ok := l.Counters["threadpool-queue-length"]
	expect.True(t, ok && len(l.Allocated) > 0 && l.Samples != 0, "%+v", l)
}

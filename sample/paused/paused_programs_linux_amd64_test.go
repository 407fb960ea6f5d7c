package paused

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/threadprog"
)

var programWalks = flag.Int("programwalks", 60,
	"how many stacks of each program of others TestPausedPrograms walks at least")

// foreignProgram is a program by other authors or in another language.
type foreignProgram struct {
	name  string
	argv  func(t *testing.T, dir string) []string
	input string // a line that the program answers
	// returns what is wrong with a stack, from its frame names, leaf first
	wrong func(names []string, gap merge.Gap) string
}

const inPython = `
import sys
def deep(n):
    return deep(n - 1) + 1 if n else 0
print("ready", flush=True)
while True: sorted([3, 1, 2], key=lambda x: deep(10))
`

var programs = []foreignProgram{
	{"python", func(t *testing.T, _ string) []string {
		return []string{needs.Command(t, "python3"), "-c",
			inPython}
	}, "", endsAt("_start", "clone3")},
	{"node", func(t *testing.T, _ string) []string {
		return []string{needs.Command(t, "node"), "-e", `setInterval(() => {}, 1000); console.log("ready")`}
	}, "", endsAt("_start", "clone3")},
	{"git", func(t *testing.T, dir string) []string {
		git := needs.Command(t, "git")
		if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED-CHECK: %v: %s", err, out)
		}
		return []string{git, "-C", dir, "cat-file", "--batch"}
	}, "x\n", endsAt("_start", "clone3")},
	{"Go", func(t *testing.T, dir string) []string {
		exe := filepath.Join(dir, "goroutines")
		cmd := exec.Command(needs.Command(t, "go"), "build", "-o", exe, "testdata/goroutines/main.go")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		must.Run(t, cmd)
		return []string{exe}
	}, "", wrongInGo},
}

// endsAt: every stack is complete and ends at one of these functions.
func endsAt(roots ...string) func([]string, merge.Gap) string {
	return func(names []string, gap merge.Gap) string {
		n := len(names)
		stripped := n > 1 && names[n-2] == "__libc_start_main" && names[n-1] == ""
		if gap != merge.GapNone || n == 0 || !stripped && !slices.Contains(roots, names[n-1]) {
			return "it does not end where threads begin"
		}
		return ""
	}
}

// wrongInGo: the program's own functions call each other in one order and begin where goroutines do. Every
// stack is complete, except that of a thread that has switched to another stack for a moment.
func wrongInGo(names []string, gap merge.Gap) string {
	if gap != merge.GapNone {
		if !slices.ContainsFunc(names, func(n string) bool {
			return strings.HasPrefix(n, "runtime.systemstack") || strings.HasPrefix(n, "runtime.morestack") ||
				strings.HasPrefix(n, "runtime.sig")
		}) {
			return "it does not end where goroutines begin"
		}
		return ""
	}
	var own []string
	for i, n := range slices.Backward(names) {
		switch {
		case strings.HasPrefix(n, "main."):
			own = append(own, n)
		case len(own) == 0 && i > 0 && strings.HasPrefix(names[i-1], "main.") &&
			!strings.HasPrefix(n, "runtime.goexit") && n != "runtime.main":
			return "its functions are called by " + n
		}
	}
	if len(own) > 0 && own[0] == "main.main" {
		own = own[1:]
	}
	if order := []string{"main.work", "main.alpha", "main.beta", "main.gamma"}; len(own) > len(order) ||
		!slices.Equal(own, order[:len(own)]) {
		return "its functions call each other otherwise"
	}
	return ""
}

// start starts a program and waits until it answers.
func (p *foreignProgram) start(t *testing.T) (pid int) {
	t.Helper()
	argv := p.argv(t, tempdir.New(t))
	cmd := exec.Command(argv[0], argv[1:]...)
	in, _ := cmd.StdinPipe()
	out := must.Get(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	in.Write([]byte(p.input))
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Skipf("SKIPPED-CHECK: %s does not answer: %q %v", p.name, line, err)
	}
	return cmd.Process.Pid
}

// gdbCaller is a frame of gdb's with a return address.
type gdbCaller struct {
	ip   uint64
	name string
}

var gdbAnyFrame = regexp.MustCompile(`(?m)^#\d+ +(?:0x([0-9a-f]+) in )?([^ (]*)`)

// gdbCallers returns the callers in a backtrace up to the first unknown function. all reports whether that is
// the whole backtrace. The frame before one without an address was inlined into it.
func gdbCallers(part string) (out []gdbCaller, all bool) {
	for i, f := range gdbAnyFrame.FindAllStringSubmatch(part, -1) {
		switch ip, _ := strconv.ParseUint(f[1], 16, 64); {
		case i > 0 && f[1] == "":
			out[len(out)-1].name = f[2]
		case i > 0 && f[2] == "??":
			return out[1:], false
		default:
			out = append(out, gdbCaller{ip, f[2]})
		}
	}
	return out[min(1, len(out)):], true
}

// halt stops a process and waits until all its threads have stopped.
func halt(t *testing.T, pid int) {
	t.Helper()
	syscall.Kill(pid, syscall.SIGSTOP)
	for range 1000 {
		tids, _ := live.Threads(pid)
		if !slices.ContainsFunc(tids,
			func(tid int) bool { state, _ := stateOf(t, tid); return state != "T" }) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not stop")
}

// addressesOfGDB compares the callers in every stack with gdb's backtrace. gdb must show them in the same
// order, and with the same names if it knows the functions. gdb may show more calls, because it finds calls
// without a frame in the debug information.
func addressesOfGDB(t *testing.T, pid int, l *Snapshot) {
	t.Helper()
	cmd := exec.Command(needs.Command(t, "gdb"), "-nx", "-batch", "-ex", "set pagination off", "-ex",
		"set debuginfod enabled off", "-ex", "set backtrace past-main on", "-ex",
		"thread apply all bt", "-p", strconv.Itoa(pid))
	out, err := cmd.Output()
	must.Equal(t, err, nil, out)
	seen, compared := 0, 0
	for part := range strings.SplitSeq(string(out), "\nThread ") {
		tid, at := 0, strings.Index(part, "(LWP ")
		if at < 0 {
			continue
		}
		fmt.Sscanf(part[at:], "(LWP %d", &tid)
		j := slices.IndexFunc(l.Stacks, func(s Stack) bool { return int(s.TID) == tid })
		if j < 0 {
			t.Errorf("gdb has a thread %d", tid)
			continue
		}
		seen++
		if strings.Contains(part, "<signal handler called>") {
			continue // gdb shows no address of the frames that meet there
		}
		theirs, all := gdbCallers(part)
		for k, f := range l.Stacks[j].Frames[1:] {
			i := slices.IndexFunc(theirs, func(c gdbCaller) bool { return c.ip == f.IP })
			if i < 0 && !all && len(theirs) == 0 {
				break
			}
			if i < 0 || f.Name != "" && !alias(f.Name, theirs[i].name) {
				t.Errorf("thread %d: %#x %q, caller %d, is not gdb's\n%s", tid, f.IP, f.Name, k+1, part)
				break
			}
			theirs = theirs[i+1:]
			compared++
		}
	}
	if t.Logf("gdb: %d threads, %d callers", seen, compared); seen != len(l.Stacks) || compared < 2*seen {
		t.Errorf("gdb showed %d of %d threads\n%s", seen, len(l.Stacks), out)
	}
}

// Stacks of programs in other languages are complete and possible while they run, and equal gdb's once they
// are stopped.
func TestPausedPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			pid := p.start(t)
			look(t, pid)
			mem, _ := live.OpenProcess(pid)
			defer mem.Close()
			maps, _ := live.Maps(pid)
			paused := New(context.ArchAMD64, mem, live.NewLoader(pid), maps)
			walks, whole, wrong := 0, 0, 0
			for walks < *programWalks {
				tids, _ := live.Threads(pid)
				var th Thread
				live.StopEach(tids, func(tid int, r *context.Registers,
					s live.Stood) {
					th = paused.Read(uint32(tid), r, s)
				}, func(live.Stop) {
					s := paused.Walk(&th)
					if walks++; s.Gap == merge.GapNone {
						whole++
					}
					var names []string
					for _, f := range s.Frames {
						names = append(names, f.Name)
					}
					if why := p.wrong(names, s.Gap); why != "" {
						if wrong++; wrong < 4 {
							t.Errorf("thread %d: %s: %v at %#x, %q", s.TID, why, s.Gap, s.At, names)
						}
					}
				})
			}
			t.Logf("%d walks, %d whole, %d wrong", walks, whole, wrong)
			halt(t, pid)
			addressesOfGDB(t, pid, look(t, pid))
		})
	}
}

// Threads that wait on a stack that they made themselves: the walk follows all stack switches back to the
// thread's start, without guesses.
func TestPausedSwitches(t *testing.T) {
	const threads = 2
	pid, _ := threadprog.Start(t, "switches", threads)
	look(t, pid)
	mem, _ := live.OpenProcess(pid)
	defer mem.Close()
	maps, _ := live.Maps(pid)
	paused := New(context.ArchAMD64, mem, live.NewLoader(pid), maps)
	whole, why := 0, ""
	for range 50 { // a thread may still be on its way to its wait
		if whole, why = switched(t, pid, paused); whole == threads {
			return
		}
	}
	t.Errorf("%d whole stacks of %d threads:%s", whole, threads, why)
}

// switched counts the threads whose complete stacks cross all three stacks, and returns what is wrong with
// the others.
func switched(t *testing.T, pid int, paused *Process) (whole int, why string) {
	t.Helper()
	tids, _ := live.Threads(pid)
	var th Thread
	live.StopEach(tids, func(tid int, r *context.Registers, s live.Stood) {
		th = paused.Read(uint32(tid), r,
			s)
	}, func(live.Stop) {
		s := paused.Walk(&th)
		var got []string
		for _, f := range slices.Backward(s.Frames) {
			if strings.HasPrefix(f.Name, "on_") {
				got = append(got, f.Name)
			}
			expect.True(t, !f.Trust.Doubtful(), "%s by %v", f.Name, f.Trust)
		}
		switch all := []string{"on_own", "on_stack", "on_high", "on_stack",
			"on_low", "on_stack", "on_higher"}; {
		case len(got) == 0 && s.Gap == merge.GapNone: // the main thread
		case s.Gap == merge.GapNone && slices.Equal(got, all):
			whole++
		default:
			why += fmt.Sprintf("\ngap %v at %#x: %v\n%+v", s.Gap, s.At, got, s.Frames)
		}
	})
	return whole, why
}

package e2e

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var kills = flag.Int("kills", 4, "how often the tool is killed that has attached to a program")

// killsEach is the most kills for one program, killPrograms the number of programs at a time, killRounds how
// often new ones are started. A program lives for a fixed time; a busy machine does fewer kills in it than an
// idle one.
const killsEach, killPrograms, killRounds = 25, 4, 8

// The tool is killed again and again, at any moment, while it records a fragile program. A second later none
// of our timers or handlers runs, and the program ends as without us. The timer of a sleeping thread may
// still exist: it counts that thread's CPU time and removes everything as soon as there is some.
func TestProbeKilledOften(t *testing.T) {
	t.Log("program  kills  at work | a second later: timers that run  of sleeping threads  handler runs | mappings, threads, descriptors before | after")
	armed, done := 0, 0
	for round := 0; round < killRounds && (2*done < *kills || *kills > killsEach && done < *kills); round++ {
		a, d := killRound(t, *kills-done)
		armed, done = armed+a, done+d
	}
	if armed*2 < done || done*2 < *kills || *kills > killsEach && done < *kills {
		t.Errorf("killed %d times of %d, but %d times only while it was at work", done, *kills, armed)
	}
}

// killRound starts programs and kills their recordings while the programs live.
func killRound(t *testing.T, kills int) (armed, done int) {
	t.Helper()
	programs := min(killPrograms, (kills+killsEach-1)/killsEach)
	each := min(killsEach, (kills+programs-1)/programs)
	all := make([]*killed, programs)
	var wait sync.WaitGroup
	for i := range all {
		all[i] = startKilled(t, each)
		wait.Add(1)
		go func() { defer wait.Done(); all[i].repeat(each) }()
	}
	wait.Wait()
	for i, k := range all {
		k.end(t, i)
		armed, done = armed+k.armed, done+k.done
	}
	return armed, done
}

// killed is a program whose recordings are killed.
type killed struct {
	*process
	file, tool    string
	before, after systemState
	state         func() systemState
	last, ends    time.Time // no kill begins after last; the program runs at least until ends

	tag               uint64 // of the last recording
	done, armed       int
	late, still, runs int // a second after a kill: timers that run, timers that do not, runs of the handler
	wrong             []string
}

func startKilled(t *testing.T, each int) *killed {
	t.Helper()
	seconds := 10 + 4*each
	k := &killed{file: filepath.Join(tempdir.New(t), "out.json"), tool: tool(t)}
	k.ends = time.Now().Add(time.Duration(seconds) * time.Second)
	k.process = attached(t, app(t, "Survive", fmt.Sprint(seconds))...)
	k.state = func() systemState { return systemStateOf(t, k.pid) }
	k.before = k.state()
	k.last = k.ends.Add(-3 * time.Second)
	return k
}

func (k *killed) repeat(times int) {
	for k.done < times && time.Now().Before(k.last) {
		k.once()
	}
}

func (k *killed) once() {
	pid := k.pid
	// Timers stay in the program when their tool dies. Perf events end with the tool.
	tool := exec.Command(k.tool, "record", "--pid", fmt.Sprint(pid), "--rate", "1000", "--clock", "timer",
		"--quiet", "--output", k.file)
	if err := tool.Start(); err != nil {
		k.wrong = append(k.wrong, err.Error())
		return
	}
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until) &&
		(timers(pid) == 0 || k.tag == headerWord(pid, tagWord)); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(rand.N(100 * time.Millisecond))
	if tag := headerWord(pid, tagWord); tag != k.tag && timers(pid) > 0 {
		k.tag, k.armed = tag, k.armed+1
	}
	tool.Process.Kill()
	tool.Wait()
	k.done++
	time.Sleep(700 * time.Millisecond)
	used := processorTimes(pid)
	time.Sleep(300 * time.Millisecond)
	ran := headerWord(pid, signalsWord)
	for _, tid := range timersOf(pid) {
		if processorTimes(pid)[tid]-used[tid] < 2*tick {
			k.still++
			continue
		}
		k.late++
		k.wrong = append(k.wrong,
			fmt.Sprintf("kill %d: the timer of thread %s runs a second later", k.done, tid))
	}
	time.Sleep(200 * time.Millisecond)
	k.runs += int(headerWord(pid, signalsWord) - ran)
	if after := k.state(); time.Now().Before(k.ends) { // later it opens its output, and threads end
		k.after = after
	}
}

// tick is the kernel's: it checks processor timers at this interval.
const tick = 10 * time.Millisecond

// processorTimes returns the CPU times of a process's threads, by thread number.
func processorTimes(pid int) map[string]time.Duration {
	out := map[string]time.Duration{}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
		first, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		out[task.Name()] = time.Duration(n)
	}
	return out
}

// end waits for the program's end, and checks the results.
func (k *killed) end(t *testing.T, i int) {
	t.Helper()
	t.Logf("%7d  %5d  %7d | %31d  %19d  %12d | %8d, %d, %-23d | %d, %d, %d", i+1, k.done,
		k.armed, k.late, k.still, k.runs,
		k.before.mappings, k.before.threads, k.before.descriptors, k.after.mappings,
		k.after.threads, k.after.descriptors)
	for _, w := range k.wrong {
		t.Errorf("program %d: %s", i+1, w)
	}
	if k.runs > k.still { // from a thread that slept: runs once and removes everything
		t.Errorf("program %d: the handler ran %d times for tools that were dead for a second", i+1, k.runs)
	}
	if k.after.ours > 8 || k.after.descriptors > k.before.descriptors+4 { // it forks, and loads libraries
		t.Errorf("program %d: %+v, before %+v", i+1, k.after, k.before)
	}
	k.wait()
	expect.True(t, k.err == nil, "program %d ended with %v", i+1, k.err)
	alone(t, k.out.String(), k.done)
}

// Offsets in the probe's header (probe.h): the recording's number, and the number of runs of the handler.
const tagWord, signalsWord = 24, 104

// headerWord returns a word of the probe's header in a process, or 0.
func headerWord(pid int, at int64) uint64 {
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(maps)) {
		low, _, _ := strings.Cut(line, "-")
		base, err := strconv.ParseUint(low, 16, 64)
		if err != nil || !strings.Contains(line, "memfd:seedwalk-probe") {
			continue
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			return 0
		}
		defer mem.Close()
		var b [8]byte
		mem.ReadAt(b[:], int64(base)+at)
		return binary.LittleEndian.Uint64(b[:])
	}
	return 0
}

var killsAnywhere = flag.Int("killsanywhere", 4,
	"how often the tool is killed at any moment of an attachment or of stack PID")

// The tool is killed at any moment: while it attaches, samples, detaches, or has a thread of the program
// stopped. No thread stays stopped or traced, and the program works to its end as without us.
func TestKilledAnywhere(t *testing.T) {
	p := attached(t, app(t, "Truth", endless)...)
	pid, file := p.pid, filepath.Join(tempdir.New(t), "out.json")
	before := settled(t, pid)
	ended := map[string]int{}
	for i := range *killsAnywhere {
		what, limit := "record", 1500*time.Millisecond
		args := []string{"record", "--pid", fmt.Sprint(pid), "--duration",
			"500ms", "--quiet", "--output", file}
		if i%2 == 1 {
			what, limit, args = "stack", 700*time.Millisecond, []string{"stack", fmt.Sprint(pid)}
		}
		tool := start(t, append([]string{tool(t)}, args...)...)
		if i%4 == 3 { // while it has a thread stopped, if that can be observed
			for begin := time.Now(); len(standing(t, pid)) == 0 && time.Since(begin) < 3*time.Second; {
			}
			what += " with a thread stopped"
		} else {
			time.Sleep(rand.N(limit))
		}
		tool.Process.Kill()
		if tool.wait() == 0 {
			what += " ended first"
		}
		ended[what]++
		until(t, fmt.Sprintf("kill %d (%s): no thread stands", i, what),
			func() bool { return len(standing(t, pid)) == 0 })
	}
	t.Logf("killed %v", ended)
	// The next recording repairs what the killed ones have left.
	r := record(t, "--duration 500ms --quiet --pid "+p.id)
	expect.True(t, r.code == 0, "a recording after all: exit code %d, %s", r.code, r.stderr)
	clean(t, pid, before)
	p.truthDone()
}

// standing lists the threads of a process that are stopped or traced.
func standing(t *testing.T, pid int) (out []string) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	must.True(t, len(tasks) > 0, "the program is gone")
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		s := string(b)
		if len(s) > 0 && (strings.Contains(s, "\nState:\tT") || strings.Contains(s, "\nState:\tt") ||
			!strings.Contains(s, "\nTracerPid:\t0\n")) {
			out = append(out, f)
		}
	}
	return out
}

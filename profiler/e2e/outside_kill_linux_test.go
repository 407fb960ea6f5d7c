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

	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

var kills = flag.Int("kills", 4, "how often the tool is killed that has attached to a program")

// killsEach is how many of many kills one program has, killPrograms how many programs
// there are at a time.
const killsEach, killPrograms = 25, 4

// The tool is killed again and again, at any moment, while it records a program that
// is easily hurt: a second later no timer of ours is there and no handler of ours runs,
// and the program ends as without us.
func TestProbeKilledOften(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	programs := min(killPrograms, (*kills+killsEach-1)/killsEach)
	each := (*kills + programs - 1) / programs
	all := make([]*killed, programs)
	var wait sync.WaitGroup
	for i := range all {
		all[i] = startKilled(t, each)
		wait.Add(1)
		go func() { defer wait.Done(); all[i].repeat(each) }()
	}
	wait.Wait()
	t.Log("program  kills  at work  a second later: timers  handler runs  | before: mappings  threads  descriptors | after")
	armed, done := 0, 0
	for i, k := range all {
		k.end(t, i)
		armed, done = armed+k.armed, done+k.done
	}
	if armed*2 < done || done < *kills {
		t.Errorf("killed %d times of %d, but %d times only while it was at work", done, *kills, armed)
	}
}

// killed is a program whose recordings are killed.
type killed struct {
	cmd           *exec.Cmd
	out           *strings.Builder
	file, tool    string
	before, after systemState
	until         time.Time

	done, armed int
	late, runs  int // timers that were there a second after a kill; runs of the handler later
	wrong       []string
}

func startKilled(t *testing.T, each int) *killed {
	t.Helper()
	seconds := 10 + 3*each
	k := &killed{file: filepath.Join(tempdir.New(t), "out.json"), tool: tool(t)}
	k.cmd, k.out = attached(t, app(t, "Survive", fmt.Sprint(seconds))...)
	k.before = systemStateOf(t, k.cmd.Process.Pid)
	k.until = time.Now().Add(time.Duration(seconds-6) * time.Second)
	return k
}

func (k *killed) repeat(times int) {
	for k.done < times && time.Now().Before(k.until) {
		k.once()
	}
}

func (k *killed) once() {
	pid := k.cmd.Process.Pid
	tool := exec.Command(k.tool, "record", "--pid", fmt.Sprint(pid), "--rate", "1000", "--quiet", "--output", k.file)
	if err := tool.Start(); err != nil {
		k.wrong = append(k.wrong, err.Error())
		return
	}
	for until := time.Now().Add(2 * time.Second); timers(pid) == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(rand.N(100 * time.Millisecond))
	if timers(pid) > 0 {
		k.armed++
	}
	tool.Process.Kill()
	tool.Wait()
	k.done++
	time.Sleep(time.Second)
	n, ran := timers(pid), handlerRuns(pid)
	if k.late += n; n > 0 {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/timers", pid))
		k.wrong = append(k.wrong, fmt.Sprintf("%d timers a second after kill %d\n%s", n, k.done, text))
	}
	time.Sleep(200 * time.Millisecond)
	k.runs += int(handlerRuns(pid) - ran)
}

// end judges when the program ends.
func (k *killed) end(t *testing.T, i int) {
	t.Helper()
	k.after = systemStateOf(t, k.cmd.Process.Pid)
	t.Logf("%7d  %5d  %7d  %22d  %12d  | %16d  %7d  %11d | %d  %d  %d", i+1, k.done, k.armed, k.late, k.runs,
		k.before.mappings, k.before.threads, k.before.descriptors, k.after.mappings, k.after.threads, k.after.descriptors)
	for _, w := range k.wrong {
		t.Errorf("program %d: %s", i+1, w)
	}
	if k.runs > 0 {
		t.Errorf("program %d: the handler ran %d times for tools that were dead for a second", i+1, k.runs)
	}
	if k.after.ours > 5 || k.after.descriptors > k.before.descriptors+4 { // it forks, and loads libraries
		t.Errorf("program %d: %+v, before %+v", i+1, k.after, k.before)
	}
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("program %d ended with %v", i+1, err)
	}
	alone(t, k.out.String(), k.done)
}

// handlerRuns is how often the probe's handler has run in a process: the header's word,
// of probe.h.
func handlerRuns(pid int) uint64 {
	const signals = 104
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
		mem.ReadAt(b[:], int64(base)+signals)
		return binary.LittleEndian.Uint64(b[:])
	}
	return 0
}

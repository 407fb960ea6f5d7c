package e2e

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// sharedProgram runs a program in which A uses 25 % and B 75 % of the CPU time.
func sharedProgram(t *testing.T) string {
	t.Helper()
	return attached(t, app(t, "Exact", "steady", "60")...).id
}

// background begins a recording.
func background(t *testing.T, pid, out string, flags ...string) *process {
	t.Helper()
	return start(t, append([]string{tool(t), "record", "--pid", pid, "--output", out}, flags...)...)
}

// judgeShared compares the shares and the total in a recording with the program. The total depends on the
// machine's load.
func judgeShared(t *testing.T, name, out string) {
	t.Helper()
	p := readJSONProfile(t, out)
	seen := map[uint64]bool{}
	for _, thread := range p.Threads {
		expect.True(t, !seen[thread.ID], "%s: thread %d is there twice", name, thread.ID)
		seen[thread.ID] = true
	}
	e := p.times([]string{"SteadyA", "SteadyB"})
	share := e.method["SteadyA"] / (e.method["SteadyA"] + e.method["SteadyB"])
	t.Logf("%s: A %.1f %%, %.2f s in the profile, %.2f s of the process", name,
		100*share, e.shown/1e9, e.stated/1e9)
	chance := 1.3 / math.Sqrt(e.samples) // three standard errors: a busy machine leaves few samples
	if !(math.Abs(share-0.25) < max(0.08, chance)) || e.samples < fewSamples ||
		math.Abs(e.shown-e.stated) > 0.1*e.stated {
		t.Errorf("%s: A has %.1f %%, %.2f of %.2f s", name, 100*share, e.shown/1e9, e.stated/1e9)
	}
}

// Two recordings of one process share a probe. The second begins later and ends earlier. A third is still
// there when the first ends, or is killed, and samples the process itself from then on. Recordings from
// outside, and stack, work at the same time.
func TestTwoRecordings(t *testing.T) {
	pid, dir := sharedProgram(t), tempdir.New(t)
	file := func(name string) string { return filepath.Join(dir, name+".json") }
	first := background(t, pid, file("first"), "--duration", "9s")
	time.Sleep(1500 * time.Millisecond)
	second := background(t, pid, file("second"), "--duration", "3s")
	third := background(t, pid, file("third"), "--duration", "12s")
	r := seedwalk(t, "stack", pid)
	r.ends(t, 0, r.stdout, "Steady")
	seedwalk(t, "record", "--pid", pid, "--outside", "--duration", "2s", "--output", file("outside")).ok(t)
	r = seedwalk(t, "record", "--pid", pid, "--events", "cpu,waits", "--duration", "1s", "--output",
		file("refused"))
	r.ends(t, 125, r.stderr, "shares only CPU and wall samples")
	second.ended("samples come from another recording")
	first.ended("")
	third.ended("this one sampled the process itself")
	judgeShared(t, "first", file("first"))
	judgeShared(t, "second", file("second"))
	judgeShared(t, "third", file("third"))

	killed := background(t, pid, file("killed"), "--duration", "60s")
	time.Sleep(1500 * time.Millisecond)
	heir := background(t, pid, file("heir"), "--duration", "9s")
	time.Sleep(2 * time.Second)
	killed.Process.Kill()
	heir.ended("this one sampled the process itself")
	judgeShared(t, "heir", file("heir"))
}

// Recordings of one process that begin at the same moment share a probe: one loads it, and the others wait.
func TestSameMoment(t *testing.T) {
	pid, dir := sharedProgram(t), tempdir.New(t)
	for round := range 3 {
		var all []*process
		for i := range 3 {
			all = append(all, background(t, pid,
				filepath.Join(dir, fmt.Sprint(round, i, ".json")), "--duration", "2s"))
		}
		joined := 0
		for _, p := range all {
			p.ended("")
			joined += strings.Count(p.errs.String(), "samples come from another recording")
		}
		expect.Equal(t, joined, len(all)-1, "round %d: recordings of %d have joined", round, len(all))
	}
}

// Class id of the second profiler; any value works.
const secondID = "{846F5F1C-F9AE-4B07-969E-05C26BC060D8}"

// secondAs are the variables that make the second profiler the main one, or a notification profiler.
func secondAs(library string) (main, beside map[string]string) {
	return map[string]string{"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": secondID,
			"CORECLR_PROFILER_PATH": library},
		map[string]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS": "1",
			"CORECLR_NOTIFICATION_PROFILERS": library + "=" + secondID + ";"}
}

// heard counts the callbacks that the second profiler received.
type heard struct{ modules, methods, threads, collections, events uint64 }

func readHeard(t *testing.T, path string) (h heard) {
	t.Helper()
	b := []byte(readFile(t, path)) // the second profiler wrote it at its end
	must.True(t, len(b) == 40, "the second profiler wrote %d bytes", len(b))
	n := binary.LittleEndian.Uint64
	return heard{n(b), n(b[8:]), n(b[16:]), n(b[24:]), n(b[32:])}
}

// Together with another vendor's profiler, in either role and in either order: both are served, and stacks
// agree with the threads' own records.
func TestBesideAnother(t *testing.T) {
	second := need(t, "out", "samples", "libsecond.so")
	isMain, isBeside := secondAs(second)
	for _, c := range []struct {
		name    string // what the other profiler is
		env     map[string]string
		runtime string
		way     string // attach, or a mode
	}{
		{"net9 main", isMain, needs.Net9, "probe"},
		{"net9 beside", isBeside, needs.Net9, "probe"},
		{"net9 main suspended", isMain, needs.Net9, "snapshot"},
		{"net10 main", isMain, needs.Net10, "probe"},
		{"net10 beside", isBeside, needs.Net10, "probe"},
		{"net9 main attached", isMain, needs.Net9, "attach"},
		{"net10 main attached", isMain, needs.Net10, "attach"},
		{"net10 beside attached", isBeside, needs.Net10, "attach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			counts := filepath.Join(tempdir.New(t), "counts")
			env := []string{"env", "SECOND_COUNTS=" + counts}
			for k, v := range c.env {
				env = append(env, k+"="+v)
			}
			k := newChecker(t)
			if c.way == "attach" {
				k.attached(t, append(env, on(t, c.runtime, "Truth", endless)...))
			} else {
				r := recordRawBy(t, env, "--rate 100 --mode "+c.way, on(t, c.runtime, "Truth", "4")...)
				r.well(t, 0, "TRUTH DONE\n")
				k.recorded(t, r)
			}
			h := readHeard(t, counts)
			t.Logf("the other heard %+v", h)
			k.few(t, 60, 95)
			expect.True(t, h.modules >= 2 && h.methods >= 30 && h.threads >= 20,
				"the other profiler heard only %+v", h)
		})
	}
}

// attached starts a truth program, records it for five seconds when it runs, and compares.
func (c *checker) attached(t *testing.T, argv []string) {
	t.Helper()
	p := attached(t, argv...)
	r := recordRaw(t, "--rate 100 --duration 5s --pid "+p.id)
	if t.Log("\n" + r.stderr); r.code != 0 {
		t.FailNow()
	}
	c.recorded(t, r)
	p.truthDone()
}

var attachments = flag.Int("attachments", 3, "how often a process is attached to")

// systemState counts a process's system resources, without those that a runtime creates and removes at any
// time.
type systemState struct {
	ours                     int // mappings of the probe's
	mappings                 int // all, including those that a runtime creates and removes at any time
	descriptors, threads     int
	timers                   int
	ignored, caught, pending string
}

func systemStateOf(t *testing.T, pid int) (s systemState) {
	t.Helper()
	maps := readFile(t, fmt.Sprintf("/proc/%d/maps", pid))
	s.ours = len(regexp.MustCompile(`(?m)^.*(libseedwalk_probe|seedwalk-probe).*$`).FindAllString(maps, -1))
	s.mappings = strings.Count(maps, "\n")
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	s.threads, s.timers = len(tasks), timers(pid)
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	s.descriptors = len(fds)
	f := must.Get(os.Open(fmt.Sprintf("/proc/%d/status", pid)))(t)
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		switch k, v, _ := strings.Cut(sc.Text(), ":\t"); k {
		case "SigIgn":
			s.ignored = v
		case "SigCgt":
			s.caught = v
		case "SigPnd":
			s.pending = v
		}
	}
	return s
}

// A process is recorded again and again. After each time it has no more threads, mappings, descriptors, or
// handlers of ours than after the first; its output is unchanged; and there are samples each time.
func TestAttachAgain(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		attachAgain(t, attached(t, on(t, runtime, "Truth", endless)...))
	})
}

// settled waits until a program has all its threads and files.
func settled(t *testing.T, pid int) (s systemState) {
	t.Helper()
	for last, same := (systemState{}), 0; same < 8; last = s {
		time.Sleep(250 * time.Millisecond)
		s = systemStateOf(t, pid)
		if same++; s.threads != last.threads || s.descriptors != last.descriptors || s.caught != last.caught {
			same = 0
		}
	}
	return s
}

func attachAgain(t *testing.T, p *process) {
	before := settled(t, p.pid)
	var first, now systemState
	defer func() {
		t.Logf("before: %+v\nafter the first attachment: %+v\nafter the last: %+v", before, first, now)
	}()
	total := int64(0)
	for i := range *attachments {
		r := record(t, "--duration 2s --pid "+p.id)
		must.True(t, r.code == 0 && r.Samples != 0,
			"attachment %d: exit code %d, %d samples\n%s", i, r.code, r.Samples, r.stderr)
		total += r.Samples
		// The runtime closes the tool's connection when its thread runs.
		until(t, fmt.Sprintf("nothing is left of attachment %d", i), func() bool {
			if now = systemStateOf(t, p.pid); i == 0 {
				first = now
			}
			return now.caught == before.caught && now.descriptors == before.descriptors &&
				now.ours == first.ours && now.ignored == first.ignored && now.timers == 0
		})
	}
	t.Logf("%d samples of %d attachments", total, *attachments)
	if now.threads > before.threads+2 { // the runtime creates one now and then; none is ours
		t.Errorf("%d threads, %d before", now.threads, before.threads)
	}
	if grown := now.mappings - first.mappings; grown > 60+*attachments/4 { // code is compiled meanwhile
		t.Errorf("%d mappings more than after the first", grown)
	}
	p.truthDone()
}

// clean fails the test unless a process is soon again as it was before a recording: the runtime closes the
// tool's connection when its thread runs.
func clean(t *testing.T, pid int, before systemState) {
	t.Helper()
	var now systemState
	defer func() {
		if now.caught != before.caught || now.descriptors != before.descriptors || now.timers != 0 {
			files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for i, name := range files {
				target, _ := os.Readlink(name)
				files[i] = filepath.Base(name) + " " + target
			}
			t.Logf("now: %+v; descriptors: %q", now, files)
		}
	}()
	until(t, fmt.Sprintf("the process is again as before: %+v", before), func() bool {
		now = systemStateOf(t, pid)
		return now.caught == before.caught && now.descriptors == before.descriptors && now.timers == 0
	})
}

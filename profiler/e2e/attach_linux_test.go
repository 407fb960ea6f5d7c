package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
)

var (
	attachments = flag.Int("attachments", 3, "how often a process is attached to")
	attachTime  = flag.Int("attachtime", 5, "seconds that the process lives for each, more on a busy machine")
)

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
		attachAgain(t, attached(t, on(t, runtime, "Truth", fmt.Sprint(15+*attachTime**attachments))...))
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

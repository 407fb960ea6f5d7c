package e2e

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var (
	attachments = flag.Int("attachments", 4, "how often a process is attached to")
	attachTime  = flag.Int("attachtime", 5, "seconds that the process lives for each, more on a busy machine")
)

// state is what a process has of the system, without what a runtime makes and drops
// by itself.
type systemState struct {
	ours                     int // mappings of the probe's
	mappings                 int // all, of which a runtime makes and drops some by itself
	descriptors, threads     int
	timers                   int
	ignored, caught, pending string
}

func systemStateOf(t *testing.T, pid int) (s systemState) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	s.ours = len(regexp.MustCompile(`(?m)^.*(libseedwalk_probe|seedwalk-probe).*$`).FindAll(maps, -1))
	s.mappings = strings.Count(string(maps), "\n")
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	s.threads, s.timers = len(tasks), timers(pid)
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	s.descriptors = len(fds)
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
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

// attached starts a program and waits for its runtime.
func attached(t *testing.T, argv ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED-CHECK: the probe is for x86-64")
	}
	var out strings.Builder
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	time.Sleep(3 * time.Second)
	return cmd, &out
}

// A process is recorded again and again: it has no more threads, mappings,
// descriptors and handlers of ours after each than after the first, its output is
// its own, and there are samples each time.
func TestAttachAgain(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	seconds := fmt.Sprint(15 + *attachTime**attachments)
	t.Run("net9", func(t *testing.T) { attachAgain(t, app(t, "Truth", seconds)) })
	t.Run("net10", func(t *testing.T) {
		t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
		attachAgain(t, []string{need(t, "out", "samples", "Truth10"), seconds})
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

func attachAgain(t *testing.T, argv []string) {
	cmd, out := attached(t, argv...)
	pid := cmd.Process.Pid
	before := settled(t, pid)
	var first, now systemState
	defer func() {
		t.Logf("before: %+v\nafter the first attachment: %+v\nafter the last: %+v", before, first, now)
	}()
	file := filepath.Join(tempdir.New(t), "out.json")
	total := int64(0)
	for i := range *attachments {
		r := run(t, time.Minute, nil, tool(t), "record", "--pid", fmt.Sprint(pid), "--duration", "2s", "--json", "--output", file)
		var sum struct {
			Stats struct {
				Samples int64 `json:"samples"`
			} `json:"stats"`
		}
		if r.code != 0 {
			t.Fatalf("attachment %d: exit code %d\n%s", i, r.code, r.stderr)
		}
		line := r.stderr[strings.IndexByte(r.stderr, '{'):]
		if err := json.Unmarshal([]byte(line), &sum); err != nil || sum.Stats.Samples == 0 {
			t.Errorf("attachment %d: %d samples, %v\n%s", i, sum.Stats.Samples, err, line)
		}
		total += sum.Stats.Samples
		// The runtime closes the tool's connection when its thread runs.
		until(t, fmt.Sprintf("nothing is left of attachment %d", i), func() bool {
			if now = systemStateOf(t, pid); i == 0 {
				first = now
			}
			return now.caught == before.caught && now.descriptors == before.descriptors && now.ours == first.ours && now.ignored == first.ignored && now.timers == 0
		})
	}
	t.Logf("%d samples of %d attachments", total, *attachments)
	if now.threads > before.threads+2 { // the runtime makes one now and then, none of them is ours
		t.Errorf("%d threads, %d before", now.threads, before.threads)
	}
	if grown := now.mappings - first.mappings; grown > 60+*attachments/4 { // code is compiled meanwhile
		t.Errorf("%d mappings more than after the first", grown)
	}
	if err := cmd.Wait(); err != nil || out.String() != "TRUTH DONE\n" {
		t.Errorf("the program ended with %v and said %q", err, out)
	}
}

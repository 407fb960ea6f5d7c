package e2e

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// sharedProgram runs a program of which A is 25 % and B 75 % of the processor time.
func sharedProgram(t *testing.T) string {
	t.Helper()
	cmd, _ := attached(t, exactApps(t)["net9"]("steady", "60")...)
	return fmt.Sprint(cmd.Process.Pid)
}

// background begins a recording.
func background(t *testing.T, pid, out string, flags ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	cmd, said := exec.Command(tool(t), append([]string{"record", "--pid", pid, "--output", out}, flags...)...), new(strings.Builder)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, said
}

// judgeShared holds the shares and the total of a recording against the program.
func judgeShared(t *testing.T, name, out string, least float64) {
	t.Helper()
	p := readJSONProfile(t, out)
	e := p.times([]string{"SteadyA", "SteadyB"})
	share := e.method["SteadyA"] / (e.method["SteadyA"] + e.method["SteadyB"])
	t.Logf("%s: A %.1f %%, %.2f s in the profile, %.2f s of the process", name, 100*share, e.shown/1e9, e.stated/1e9)
	if !(math.Abs(share-0.25) < 0.08) || e.shown < least*1e9 || math.Abs(e.shown-e.stated) > 0.1*e.stated {
		t.Errorf("%s: A has %.1f %%, %.2f of %.2f s", name, 100*share, e.shown/1e9, e.stated/1e9)
	}
}

// Two recordings of one process share a probe. The second begins later and ends earlier; another
// is still there when the first ends, or is killed, and samples the process itself from then on.
// Recordings from outside, and stack, work beside them.
func TestTwoRecordings(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	pid, dir := sharedProgram(t), tempdir.New(t)
	file := func(name string) string { return filepath.Join(dir, name+".json") }
	first, firstSaid := background(t, pid, file("first"), "--duration", "9s")
	time.Sleep(1500 * time.Millisecond)
	second, secondSaid := background(t, pid, file("second"), "--duration", "3s")
	third, thirdSaid := background(t, pid, file("third"), "--duration", "12s")
	if r := run(t, time.Minute, nil, tool(t), "stack", pid); r.code != 0 || !strings.Contains(r.stdout, "Steady") {
		t.Errorf("stack: %d %s", r.code, r.stderr)
	}
	if r := run(t, time.Minute, nil, tool(t), "record", "--pid", pid, "--outside", "--duration", "2s", "--output", file("outside")); r.code != 0 {
		t.Errorf("outside: %d %s", r.code, r.stderr)
	}
	if r := run(t, time.Minute, nil, tool(t), "record", "--pid", pid, "--events", "cpu,waits", "--duration", "1s", "--output", file("refused")); r.code != 125 ||
		!strings.Contains(r.stderr, "gives CPU and wall samples only") {
		t.Errorf("other events: %d %s", r.code, r.stderr)
	}
	if second.Wait() != nil || !strings.Contains(secondSaid.String(), "samples come from another recording") {
		t.Errorf("the second: %s", secondSaid)
	}
	if first.Wait() != nil {
		t.Errorf("the first: %s", firstSaid)
	}
	if third.Wait() != nil || !strings.Contains(thirdSaid.String(), "this one sampled the process itself") {
		t.Errorf("the third: %s", thirdSaid)
	}
	judgeShared(t, "first", file("first"), 2)
	judgeShared(t, "second", file("second"), 0.7)
	judgeShared(t, "third", file("third"), 2.5)

	killed, _ := background(t, pid, file("killed"), "--duration", "60s")
	time.Sleep(1500 * time.Millisecond)
	heir, said := background(t, pid, file("heir"), "--duration", "9s")
	time.Sleep(2 * time.Second)
	killed.Process.Signal(syscall.SIGKILL)
	killed.Wait()
	if heir.Wait() != nil || !strings.Contains(said.String(), "this one sampled the process itself") {
		t.Errorf("after a kill: %s", said)
	}
	judgeShared(t, "heir", file("heir"), 1.5)
}

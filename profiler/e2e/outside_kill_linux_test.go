package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

var kills = flag.Int("kills", 4, "how often the tool is killed that has attached to a program")

// The tool is killed again and again, at any moment, while it records a program that
// is easily hurt: soon no timer of ours is there, and the program ends as
// without us.
func TestProbeKilledOften(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	seconds := 10 + 2**kills
	cmd, out := attached(t, app(t, "Survive", fmt.Sprint(seconds))...)
	pid, file := cmd.Process.Pid, filepath.Join(tempdir.New(t), "out.json")
	end := time.Now().Add(time.Duration(seconds-4) * time.Second)
	armed, done, late := 0, 0, 0
	for done < *kills && time.Now().Before(end) {
		tool := exec.Command(tool(t), "record", "--pid", fmt.Sprint(pid), "--rate", "1000", "--quiet", "--output", file)
		if err := tool.Start(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(2 * time.Second); timers(pid) == 0 && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
		if timers(pid) > 0 {
			armed++
		}
		time.Sleep(rand.N(100 * time.Millisecond))
		tool.Process.Kill()
		tool.Wait()
		done++
		time.Sleep(time.Second)
		if timers(pid) > 0 {
			late++ // the program may have had no processor since
		}
		for until := time.Now().Add(20 * time.Second); timers(pid) > 0 && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
		if n := timers(pid); n > 0 {
			t.Errorf("kill %d: %d timers long after it\n%s", done, n, readFile(t, fmt.Sprintf("/proc/%d/timers", pid)))
		}
	}
	t.Logf("killed %d times, %d of them with timers in the program; %d times one was there a second later", done, armed, late)
	if armed*2 < done || done == 0 {
		t.Errorf("killed %d times, but %d times only while it was at work", done, armed)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	alone(t, out.String(), done)
}

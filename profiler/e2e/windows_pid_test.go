package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A running process of .NET 10 is recorded by its number, without anything of ours in it, and its output and
// end are unchanged. doctor announces that before. If a busy machine lets the program end too early, there is
// another try.
func TestWindowsPID(t *testing.T) {
	need(t, single10)
	why := ""
	for range 3 {
		ended := make(chan result, 1)
		pid := startSingle(t, "3", ended)
		why = doctorPID(t, pid)
		if why == "" {
			why = recordPID(t, pid)
		}
		if r := <-ended; r.code != 0 || !strings.HasPrefix(r.stdout, "singlefile: 12 threads") {
			t.Errorf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
		}
		if why == "" || t.Failed() {
			break
		}
		t.Log("once more: ", why)
	}
	if why != "" {
		t.Error(why)
	}
}

func doctorPID(t *testing.T, pid string) (why string) {
	t.Helper()
	r := wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), "doctor", "--pid", pid)
	if r.code != 0 || !has(r.stdout, "SingleFile.exe .NET 10.0.9", "nothing is put into it") {
		return fmt.Sprintf("doctor: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return ""
}

func has(s string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// startSingle starts SingleFile.exe for tens of seconds, and returns its number in
// Windows.
func startSingle(t *testing.T, tens string, ended chan<- result) string {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "pid")
	argv := wine(t, "launch.exe", need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "SingleFile.exe"), tens)
	env := []string{"SWHOST_LIMIT=120", "SWHOST_PID=" + windowsPath(file)}
	go func() { ended <- run(t, 3*time.Minute, env, argv...) }()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil {
			time.Sleep(3 * time.Second) // until it works
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatal("the program does not start")
	return ""
}

// leastOfPID is the least number of samples of a recording: in Wine each takes some time.
const leastOfPID = 5

func recordPID(t *testing.T, pid string) (why string) {
	t.Helper()
	dir := tempdir.New(t)
	out, file := filepath.Join(dir, "out.json"), filepath.Join(dir, "raw")
	r := run(t, 2*time.Minute, nil, wine(t, "seedwalk.exe", "record", "--json", "--pid", pid, "--duration", "8s", "--raw", file, "--output", out)...)
	at := strings.Index(r.stderr, `{"format"`)
	if r.code != 0 || at < 0 {
		return fmt.Sprintf("the recording: %d\n%s", r.code, r.stderr)
	}
	if !has(r.stderr, `".NET 10.0.9"`, "nothing of seedwalk is in the process") {
		t.Errorf("the recording: %s", r.stderr[at:])
	}
	samples, rd := readRaw(t, file, r.stderr)
	if len(samples) < leastOfPID {
		return fmt.Sprintf("%d samples\n%s", len(samples), r.stderr)
	}
	o := outsideRun{gaps: map[merge.Gap]int{}, shapes: newShapes(singleFile)}
	o.judge(t, samples, rd)
	t.Logf("%d samples, %d complete; %v", o.total, o.whole, o.stacks)
	if o.whole*10 < (o.total-o.wine)*8 {
		t.Errorf("%d samples, %d complete; %v", o.total, o.whole, o.gaps)
	}
	return ""
}

// A process that cannot be recorded is refused with the reason and what to do.
func TestWindowsPIDRefused(t *testing.T) {
	need(t, "out", "windows", "seedwalk.exe")
	for _, c := range []struct {
		name string
		argv []string
		want []string
	}{
		{"no such process", []string{"record", "--pid", "999999"}, []string{"there is no such process", "tasklist"}},
		{"outside", []string{"record", "--pid", "999999", "--outside"}, []string{"--outside", "leave it away"}},
		{"stack", []string{"stack", "999999"}, []string{"record --pid PID --duration 2s"}},
		{"doctor, no such process", []string{"doctor", "--pid", "999999"}, []string{"there is no process 999999", "tasklist"}},
	} {
		r := wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), c.argv...)
		if all := r.stdout + r.stderr; r.code == 0 || !has(all, c.want...) {
			t.Errorf("%s: %d, %s", c.name, r.code, all)
		}
	}
}

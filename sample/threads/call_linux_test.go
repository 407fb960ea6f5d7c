package threads

import (
	"os/exec"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A sleep and a poll end by a signal. A read, a wait for a child, and an unknown call do not.
func TestEndsBySignal(t *testing.T) {
	for _, c := range []struct {
		number int64
		arch   string
		want   bool
	}{
		{35, "amd64", true}, {101, "arm64", true}, {35, "arm64", false},
		{101, "amd64", false}, {7, "amd64", true}, {0, "amd64", false},
		{202, "amd64", false}, {232, "amd64", false}, {-1, "amd64", false},
		{-1, "arm64", false},
	} {
		expect.Equal(t, endsBySignal(c.number, c.arch), c.want, "call %d of %v", c.number, c.arch)
	}
}

// The kernel's file names the call of a process that sleeps.
func TestEndsBySignalOfSleep(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	must.Do(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	f := OpenFiles(cmd.Process.Pid)
	for end := time.Now().Add(10 * time.Second); !f.Sleeps(uint32(cmd.Process.Pid)); {
		must.True(t, !time.Now().After(end), "the sleep is not seen")
		time.Sleep(10 * time.Millisecond)
	}
	expect.True(t, !f.Sleeps(1<<22), "a thread that does not exist")
}

// The file syscall begins with the number, with -1, or with "running".
func TestParseCall(t *testing.T) {
	for text, want := range map[string]int64{
		"35 0x1 0x7000 0x4000\n": 35, "0 0x0 0x7000 0x4000\n": 0, "-1 0x7000 0x4000\n": -1,
		"running\n": -1, "": -1,
		"35": -1, " 35 ": -1, "99999999999999999999 0x1": -1,
	} {
		expect.Equal(t, parseCall([]byte(text)), want, "%q", text)
	}
}

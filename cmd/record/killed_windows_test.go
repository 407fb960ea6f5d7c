package record

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func init() { otherTargets["killed"] = killed }

// killed ends in the middle of a message, as a crash does.
func killed() int {
	send(greet, samples(10)).Write([]byte{byte(wire.TypeNote), 9, 'h', 'a'})
	time.Sleep(500 * time.Millisecond) // a reset connection discards what was not read
	h, _ := syscall.GetCurrentProcess()
	syscall.TerminateProcess(h, 0xc0000005)
	return 98
}

func TestKilledTarget(t *testing.T) {
	opt, _ := fakeRun(t, "killed")
	res := mustRun(t, opt)
	expect.True(t, uint32(res.ExitCode) == 0xc0000005, "exit code %#x", res.ExitCode)
	got := content(t, opt.Outputs[0].Path)
	expect.True(t, strings.Contains(got, "x10"), "samples lost: %s", got)
	s := &res.Profile.Stats
	if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "was cut off") ||
		s.ExitNote != "the command was ended by an access violation (exit code 0xc0000005)" {
		t.Errorf("notes %q, %q", notes, s.ExitNote)
	}
}

package live

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/seedwalk/seedwalk/context"
)

// Child processes that end while they are being stopped can still be waited for, with their exit code.
func TestStopLeavesEndToParent(t *testing.T) {
	looked := 0
	for range 300 {
		cmd := exec.Command("sh", "-c", "exit 7")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for gone := false; !gone; {
			StopEach([]int{cmd.Process.Pid}, func(int, *context.Registers, Stood) { looked++ }, func(s Stop) {
				var e *StopError
				if gone = errors.As(s.Err, &e); gone && e.Why == Denied {
					t.Skip("SKIPPED-CHECK: this machine lets no process be stopped")
				}
			})
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
			t.Fatalf("Wait says %v, want exit code 7", cmd.ProcessState)
		}
	}
	t.Logf("%d stops", looked)
}

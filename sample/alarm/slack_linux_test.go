package alarm

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// tool is an environment variable: TestEnlargeSlack sets it in the process that calls EnlargeSlack.
const tool = "SEEDWALK_TEST_SLACK"

// After EnlargeSlack, every thread of the process has the large slack, also Go's monitor. A process that
// WithUsualSlack starts has the usual one, and an environment without a trace of this.
func TestEnlargeSlack(t *testing.T) {
	if os.Getenv(tool) != "" {
		EnlargeSlack()
		printSlack(t)
		return
	}
	cmd := exec.Command(must.Get(os.Executable())(t), "-test.run=^TestEnlargeSlack$")
	cmd.Env = append(os.Environ(), tool+"=1")
	out := string(must.Get(cmd.CombinedOutput())(t))
	expect.True(t, strings.Count(out, "thread 1000000\n") >= 1, "%s", out)
	expect.True(t, strings.Count(out, "thread ") == strings.Count(out, "thread 1000000\n"), "%s", out)
	expect.True(t, strings.Contains(out, "child 50000\nPASS\n"), "%s", out)
}

func printSlack(t *testing.T) {
	fmt.Printf("thread %d\n", must.Get(unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0))(t))
	for _, task := range must.Get(os.ReadDir("/proc/self/task"))(t) {
		b, err := os.ReadFile("/proc/" + task.Name() + "/timerslack_ns") // of others as root only
		if err == nil {
			fmt.Printf("thread %s", b)
		}
	}
	var b []byte
	must.Do(t, WithUsualSlack(func() error {
		b, _ = exec.Command("sh", "-c", `cat /proc/self/timerslack_ns; env | grep `+slackBefore).Output()
		return nil // its error says that grep found nothing
	}))
	fmt.Printf("child %s", b)
}

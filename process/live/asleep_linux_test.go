package live

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// waitsForChild makes the test binary a process with a thread in uninterruptible sleep.
const waitsForChild = "SEEDWALK_TEST_WAITS_FOR_CHILD"

func init() {
	if os.Getenv(waitsForChild) == "" {
		return
	}
	fmt.Println(unix.Gettid())
	pause := unix.Timespec{Sec: 60}
	child, _, _ := syscall.RawSyscall6(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if child == 0 { // a copy of this process without its other threads
		syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	os.Exit(0)
}

// A thread in uninterruptible sleep cannot be stopped. It must not be traced while other threads are read. A
// traced thread would stop when it wakes up, and would go on only after all others have been read.
func TestAsleepIsNotTraced(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), waitsForChild+"=1")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var tid int
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Sscan(line, &tid)
	for end := time.Now().Add(time.Minute); state(tid) != 'D' && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	other := exec.Command("sleep", "100")
	must.Do(t, other.Start())
	defer other.Wait()
	defer other.Process.Kill()
	denied := false
	StopEach([]int{tid, other.Process.Pid}, func(int, *context.Registers, Stood) {}, func(s Stop) {
		e, failed := s.Err.(*StopError)
		switch {
		case failed && e.Why == Denied:
			denied = true
			return
		case s.TID == tid:
			expect.True(t, failed && e.Why == Asleep, "thread in state %c: %v", state(tid), s.Err)
			return
		}
		tracer := ""
		for end := time.Now().Add(10 * time.Second); tracer != "0" && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // a kernel thread needs a moment to end
			tracer = statusField(tid, "TracerPid")
		}
		expect.Equal(t, tracer, "0", "tracer of the sleeping thread")
	})
	if denied {
		t.Skip("SKIPPED-CHECK: this machine lets no process be stopped")
	}
}

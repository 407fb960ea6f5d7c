package paused

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const killedMark = "SEEDWALK_TEST_LOOK_AT"

// TestMain is the tool that TestPausedKilled kills.
func TestMain(m *testing.M) {
	if pid, err := strconv.Atoi(os.Getenv(killedMark)); err == nil {
		fmt.Println("looking")
		for {
			LookAt(pid, nil)
		}
	}
	os.Exit(m.Run())
}

// The tool is killed at random moments: the program runs on, untraced, and no thread stays stopped.
func TestPausedKilled(t *testing.T) {
	pid, _ := startStacks(t, 6)
	look(t, pid)
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedMark+"="+strconv.Itoa(pid))
		out, _ := cmd.StdoutPipe()
		must.Do(t, cmd.Start())
		bufio.NewReader(out).ReadString('\n')
		time.Sleep(time.Duration(rand.Intn(8000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
	}
	mem, _ := live.OpenProcess(pid)
	defer mem.Close()
	counts := map[uint64]uint64{}
	tids, _ := live.Threads(pid)
	for _, tid := range tids {
		if state, tracer := stateOf(t, tid); state == "t" || state == "T" || tracer != "0" {
			t.Errorf("thread %d: state %s, traced by %s", tid, state, tracer)
		}
	}
	maps, _ := live.Maps(pid)
	paused := New(context.ArchAMD64, mem, live.NewLoader(pid), maps)
	live.StopEach(tids, func(tid int, r *context.Registers, s live.Stood) {
		th := paused.Read(uint32(tid), r, s)
		if at, ticks, _, ok := shadowIn(&th); ok {
			counts[at] = ticks
		}
	}, func(live.Stop) {})
	expect.Equal(t, len(counts), 6, "threads with a shadow")
	goOn(t, mem, counts)
}

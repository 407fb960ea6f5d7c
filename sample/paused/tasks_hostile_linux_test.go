package paused

import (
	"bufio"
	"encoding/binary"
	"flag"
	"math/rand"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var tornTasks = flag.Int("torn-tasks", 100, "how many readings of a torn heap TestTornTasks takes")

// torn replaces words of memory by other words, by the word with one bit changed, or by zero.
type torn struct {
	live.Memory
	random *rand.Rand
	every  int // one word in every such number is replaced
	seen   [256]uint64
	n      int
}

func (m *torn) ReadAt(p []byte, addr uint64) bool {
	ok := m.Memory.ReadAt(p, addr)
	m.tear(p)
	return ok && m.random.Intn(m.every) != 0
}

func (m *torn) ReadSome(p []byte, addr uint64) int {
	n := m.Memory.ReadSome(p, addr)
	m.tear(p[:n])
	if m.random.Intn(m.every) == 0 {
		n = m.random.Intn(n + 1)
	}
	return n
}

func (m *torn) tear(p []byte) {
	for i := 0; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		m.n++
		m.seen[m.n%len(m.seen)] = w
		if m.random.Intn(m.every) != 0 {
			continue
		}
		switch m.random.Intn(4) {
		case 0:
			w = m.seen[m.random.Intn(len(m.seen))]
		case 1:
			w ^= 1 << m.random.Intn(64)
		case 2:
			w = 0
		case 3:
			w += uint64(m.random.Intn(64)) << m.random.Intn(16)
		}
		binary.LittleEndian.PutUint64(p[i:], w)
	}
}

// startTasks starts a program of pending tasks, and returns its number.
func startTasks(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command(needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
		needs.File(t, "out", "samples", "Tasks.exe"), "30", "still")
	cmd.Env = append(os.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}
	return cmd.Process.Pid
}

// A heap with any inconsistent word is read to its end, in bounded time, without a panic.
func TestTornTasks(t *testing.T) {
	l := must.Get(LookAtTasks(startTasks(t), nil))(t)
	whole := l.Process.target.Mem
	refused, longest := 0, time.Duration(0)
	for seed := range int64(*tornTasks) {
		random := rand.New(rand.NewSource(seed))
		l.Process.target.Mem = &torn{Memory: whole, random: random, every: 1 << (4 + random.Intn(10))}
		began := time.Now()
		if _, err := l.Process.Tasks(); err != nil {
			refused++
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("%d of %d readings refused, the longest took %v", refused, *tornTasks, longest)
	expect.True(t, refused != *tornTasks, "nothing was read")
	expect.True(t, longest <= time.Minute, "a reading has no bound")
}

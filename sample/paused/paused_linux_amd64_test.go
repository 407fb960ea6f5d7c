package paused

import (
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/threadprog"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var walksWanted = flag.Int("walks", 0,
	"how many stacks of a program that knows them TestPausedTruth walks at least")

// startStacks starts testdata/stacks.c.
func startStacks(t *testing.T, threads int) (pid int, exe string) {
	t.Helper()
	return threadprog.Start(t, "stacks", threads)
}

// look inspects a process. It skips the test if the kernel forbids stopping threads.
func look(t *testing.T, pid int, tids ...int) *Snapshot {
	t.Helper()
	l, err := LookAt(pid, tids)
	if err != nil && strings.Contains(err.Error(), "cannot be read") {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(t, err)
	return l
}

const stacksMagic = 0x53544b43415453

// shadowIn returns a copied stack's own record: the address of the shadow, its count, and its functions, root
// first.
func shadowIn(th *Thread) (at, ticks uint64, chain []string, ok bool) {
	b := th.Stack.Data
	for i := 0; i+24+64*8 <= len(b); i += 8 {
		word := func(k int) uint64 { return binary.LittleEndian.Uint64(b[i+8*k:]) }
		if word(0) != stacksMagic || word(2) > 64 {
			continue
		}
		for k := range int(word(2)) {
			chain = append(chain, []string{"", "fa", "fb", "fc"}[word(3+k)&3])
		}
		return th.Stack.Addr + uint64(i), word(1), chain, true
	}
	return 0, 0, nil, false
}

// chainOf returns the functions of a stack that the shadow records, root first.
func chainOf(s *Stack) (out []string) {
	for _, f := range slices.Backward(s.Frames) {
		if f.Name == "fa" || f.Name == "fb" || f.Name == "fc" {
			out = append(out, f.Name)
		}
	}
	return out
}

// Threads stopped at any instruction have complete stacks that equal their shadows. One more frame at the
// leaf is a function that has not recorded itself yet, or no longer is. The threads run on afterwards.
func TestPausedTruth(t *testing.T) {
	pid, _ := startStacks(t, 8)
	look(t, pid)
	mem, _ := live.OpenProcess(pid)
	defer mem.Close()
	maps, _ := live.Maps(pid)
	paused := New(context.ArchAMD64, mem, live.NewLoader(pid), maps)
	walks, wrong := 0, 0
	counts := map[uint64]uint64{}
	for range max(300, *walksWanted/7) {
		tids, _ := live.Threads(pid)
		var th Thread
		live.StopEach(tids, func(tid int, r *context.Registers, s live.Stood) {
			th = paused.Read(uint32(tid),
				r, s)
		}, func(live.Stop) {
			s := paused.Walk(&th)
			at, ticks, want, ok := shadowIn(&th)
			if !ok {
				return
			}
			counts[at] = ticks
			walks++
			got := chainOf(&s)
			if s.Gap != merge.GapNone || len(got) < len(want) || len(got) > len(want)+1 ||
				!slices.Equal(got[:len(want)], want) {
				if wrong++; wrong < 4 {
					t.Errorf("gap %v at %#x\n got %v\nwant %v\n%+v", s.Gap, s.At, got, want, s.Frames)
				}
			}
		})
	}
	t.Logf("%d walks, %d wrong", walks, wrong)
	expect.True(t, walks >= max(2000, *walksWanted), "too few walks")
	goOn(t, mem, counts)
}

// goOn fails unless every thread's counter moves.
func goOn(t *testing.T, mem *live.Process, counts map[uint64]uint64) {
	t.Helper()
	before, b := maps.Clone(counts), make([]byte, 8)
	for range 1000 {
		for at, old := range before {
			if mem.ReadAt(b, at+8) && binary.LittleEndian.Uint64(b) > old {
				delete(before, at)
			}
		}
		if len(before) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d of %d threads stand still", len(before), len(counts))
}

func stateOf(t *testing.T, tid int) (state string, tracer string) {
	t.Helper()
	b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", tid)))(t)
	for line := range strings.Lines(string(b)) {
		switch k, v, _ := strings.Cut(strings.TrimSpace(line), ":\t"); k {
		case "State":
			state = v[:1]
		case "TracerPid":
			tracer = v
		}
	}
	return state, tracer
}

// A stopped process stays stopped, and its stacks are read.
func TestPausedStopped(t *testing.T) {
	pid, _ := startStacks(t, 4)
	syscall.Kill(pid, syscall.SIGSTOP)
	for range 3 {
		l := look(t, pid)
		must.Equal(t, len(l.Stacks), 5, "stacks")
		for _, s := range l.Stacks {
			expect.True(t, s.Gap == merge.GapNone && len(s.Frames) >= 3,
				"thread %d: %v at %#x, %d frames", s.TID, s.Gap, s.At, len(s.Frames))
		}
		for i := 0; ; i++ {
			if state, _ := stateOf(t, pid); state == "T" {
				break
			} else if i == 500 {
				t.Fatalf("state %s, stopped before", state)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	syscall.Kill(pid, syscall.SIGCONT)
	for i := 0; ; i++ {
		if state, _ := stateOf(t, pid); state != "T" && state != "t" {
			break
		} else if i == 500 {
			t.Fatal("SIGCONT has no effect any more")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Each of hundreds of threads is read once, and none is left stopped.
func TestPausedMany(t *testing.T) {
	pid, _ := startStacks(t, 500)
	syscall.Kill(pid, syscall.SIGSTOP) // 500 threads that run are a load
	defer syscall.Kill(pid, syscall.SIGKILL)
	begin := time.Now()
	l := look(t, pid)
	took := time.Since(begin)
	bad := 0
	for _, s := range l.Stacks {
		if s.Gap != merge.GapNone {
			bad++
		}
	}
	var held []time.Duration
	for _, s := range l.Stops {
		held = append(held, s.Held)
	}
	slices.Sort(held)
	t.Logf("%d stacks in %v, stopped p50 %v, at most %v", len(l.Stacks), took,
		held[len(held)/2], held[len(held)-1])
	expect.True(t, len(l.Stacks) == 501 && bad == 0, "%d stacks, %d not whole", len(l.Stacks), bad)
}

// same compares stacks frame by frame.
func same(t *testing.T, a, b *Stack) {
	t.Helper()
	if a.Gap != merge.GapNone || b.Gap != merge.GapNone || len(a.Frames) != len(b.Frames) {
		t.Errorf("thread %d: %v at %#x and %v at %#x, %d and %d frames", a.TID, a.Gap, a.At, b.Gap,
			b.At, len(a.Frames), len(b.Frames))
		return
	}
	for i := range a.Frames {
		x, y := &a.Frames[i], &b.Frames[i]
		expect.True(t, x.IP == y.IP && x.SP == y.SP && x.Name == y.Name && x.Exact == y.Exact,
			"thread %d frame %d: %#x %s and %#x %s", a.TID, i, x.IP, x.Name, y.IP, y.Name)
	}
}

// A core gives the same stacks as the process.
func TestPausedCore(t *testing.T) {
	gcore := needs.Command(t, "gcore")
	pid, _ := startStacks(t, 6)
	syscall.Kill(pid, syscall.SIGSTOP)
	l := look(t, pid)
	file := filepath.Join(tempdir.New(t), "core")
	must.Run(t, exec.Command(gcore, "-o", file, strconv.Itoa(pid)))
	core := must.Get(dump.Open(fmt.Sprintf("%s.%d", file, pid)))(t)
	m := dump.NewModules(core, nil)
	defer m.Close()
	loader := live.NewLoader(0)
	loader.Image = m.Image
	paused := New(context.ArchAMD64, m, loader, m.Maps())
	must.True(t, len(core.Threads) == len(l.Stacks) && len(core.Problems) == 0,
		"%d threads in the core, %d live, %v", len(core.Threads), len(l.Stacks), core.Problems)
	for i := range core.Threads {
		c := &core.Threads[i]
		th := paused.Read(c.TID, &c.Regs, c.Stood)
		s := paused.Walk(&th)
		j := slices.IndexFunc(l.Stacks, func(s Stack) bool { return s.TID == c.TID })
		must.True(t, j >= 0, "no thread %d", c.TID)
		same(t, &l.Stacks[j], &s)
	}
}

// A program whose file was deleted is still walked and named: from what the kernel keeps mapped, or from
// memory alone.
func TestPausedDeleted(t *testing.T) {
	pid, exe := startStacks(t, 3)
	syscall.Kill(pid, syscall.SIGSTOP)
	before := look(t, pid)
	must.Do(t, os.Remove(exe))
	after := look(t, pid)
	for i := range before.Stacks {
		same(t, &before.Stacks[i], &after.Stacks[i])
	}
	mem, _ := live.OpenProcess(pid)
	defer mem.Close()
	maps, _ := live.Maps(pid)
	loader := live.NewLoader(pid)
	loader.Image = func(m *live.Mapping) (*elf.File, error) { return live.ImageFromMemory(mem, maps, m) }
	paused := New(context.ArchAMD64, mem, loader, maps)
	tids, _ := live.Threads(pid)
	var threads []Thread
	live.StopEach(tids, func(tid int, r *context.Registers, s live.Stood) {
		threads = append(threads, paused.Read(uint32(tid), r, s))
	}, func(live.Stop) {})
	for i := range threads {
		s := paused.Walk(&threads[i])
		j := slices.IndexFunc(before.Stacks, func(b Stack) bool { return b.TID == s.TID })
		want := &before.Stacks[j]
		if s.Gap != merge.GapNone || len(s.Frames) != len(want.Frames) {
			t.Errorf("from memory: %v at %#x, %d frames of %d", s.Gap, s.At, len(s.Frames), len(want.Frames))
			continue
		}
		for k := range s.Frames {
			expect.True(t, s.Frames[k].IP == want.Frames[k].IP && s.Frames[k].SP == want.Frames[k].SP,
				"from memory: frame %d at %#x, not %#x", k, s.Frames[k].IP, want.Frames[k].IP)
		}
	}
}

// A process that cannot be read gives an error of one line.
func TestLookErrors(t *testing.T) {
	pid, _ := startStacks(t, 1)
	look(t, pid)
	traced := exec.Command("gdb", "-nx", "-batch", "-ex", "shell sleep 20", "-p", strconv.Itoa(pid))
	for _, c := range []struct {
		name string
		pid  int
		tids []int
		says string
	}{
		{"gone", 1 << 22, nil, "there is no process"},
		{"ourselves", os.Getpid(), nil, "is seedwalk itself"},
		{"no such thread", pid, []int{1}, "has no thread 1"},
	} {
		_, err := LookAt(c.pid, c.tids)
		expect.True(t, err != nil && strings.Contains(err.Error(), c.says) &&
			!strings.Contains(err.Error(), "\n"), "%s: %v", c.name, err)
	}
	if traced.Err != nil {
		t.Skip("SKIPPED-CHECK: no gdb")
	}
	must.Do(t, traced.Start())
	defer func() { traced.Process.Kill(); traced.Wait() }()
	for range 1000 {
		if _, tracer := stateOf(t, pid); tracer != "0" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	_, err := LookAt(pid, []int{pid})
	expect.True(t, err != nil && strings.Contains(err.Error(), "is traced by process"), "traced: %v", err)
}

package stack

import (
	"bufio"
	"encoding/binary"
	"flag"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var (
	mutatedDumps = flag.Int("mutated-dumps", 20, "how many mutated dumps of each kind TestMutatedDumps reads")
	mutatedSeed  = flag.Int64("mutated-seed", 1, "first seed of TestMutatedDumps")
)

// createdump has the runtime write a dump of a program with pending tasks and blocked threads.
func createdump(t *testing.T, kind string) []byte {
	t.Helper()
	tool := needs.File(t, ".cache", "dotnet-9.0.5", "package", "dist", "createdump")
	// Small stacks and heaps make small dumps.
	cmd := exec.Command("/bin/sh", "-c", `ulimit -s 512; exec "$@"`, "sh",
		needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
		needs.File(t, "out", "samples", "Tasks.exe"), "10", "still")
	cmd.Env = append(os.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "MALLOC_ARENA_MAX=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}
	file := filepath.Join(tempdir.New(t), "core")
	must.Run(t, exec.Command(tool, "--"+kind, "-f", file, strconv.Itoa(cmd.Process.Pid)))
	b := must.Get(os.ReadFile(file))(t)
	return b
}

// mutate damages a dump in one of seven ways, chosen at random, and returns what is left of it.
func mutate(b []byte, random *rand.Rand) []byte {
	le := binary.LittleEndian
	odd := []uint64{0, 1, 8, 0xfff, 0x1000, 1 << 31, 1<<32 - 1, 1 << 47, 1<<63 - 1, 1<<64 - 8, 1<<64 - 1,
		uint64(len(b)), uint64(len(b)) - 1}
	value := func(old uint64) uint64 {
		switch random.Intn(4) {
		case 0:
			return odd[random.Intn(len(odd))]
		case 1:
			return old ^ 1<<random.Intn(64)
		case 2:
			return old + uint64(random.Intn(4096)) - 2048
		}
		return random.Uint64()
	}
	change := func(at, size int) {
		if word := (at / 8) * 8; size == 8 && word+8 <= len(b) {
			le.PutUint64(b[word:], value(le.Uint64(b[word:])))
		} else if at+size <= len(b) {
			for i := range size {
				b[at+i] = byte(random.Intn(256))
			}
		}
	}
	headers, notes := int(le.Uint64(b[32:])), 0
	count := int(le.Uint16(b[56:]))
	for i := range count {
		if h := headers + 56*i; le.Uint32(b[h:]) == 4 {
			notes = int(le.Uint64(b[h+8:]))
		}
	}
	memory := headers + 56*count
	switch random.Intn(7) {
	case 0: // bits
		for range 1 + random.Intn(1000) {
			b[random.Intn(len(b))] ^= 1 << random.Intn(8)
		}
	case 1:
		return b[:random.Intn(len(b)+1)]
	case 2: // program headers
		for range 1 + random.Intn(20) {
			change(headers+56*random.Intn(count)+8*random.Intn(7), 8)
		}
	case 3: // notes: their sizes, registers, and the list of files
		for range 1 + random.Intn(20) {
			change(notes+4*random.Intn(2000), []int{1, 2, 4, 8}[random.Intn(4)])
		}
	case 4: // the header
		change(4+random.Intn(60), 1+random.Intn(4))
	case 5: // words by other words, as if pointers were confused
		for range 1 + random.Intn(20000) {
			to, from := memory+8*random.Intn((len(b)-memory)/8), memory+8*random.Intn((len(b)-memory)/8)
			le.PutUint64(b[to:], le.Uint64(b[from:]))
		}
	case 6: // pages
		for range 1 + random.Intn(50) {
			page := b[random.Intn(len(b)/4096)*4096:][:4096]
			if random.Intn(2) == 0 {
				clear(page)
			} else {
				random.Read(page)
			}
		}
	}
	return b
}

// everything shows all that stack, tasks, and hang show of a core. It reports whether the core was read, and
// whether its heap was.
func everything(b []byte) (read, heap bool) {
	c, err := dump.New(b)
	if err != nil {
		return false, false
	}
	var of tasksFlags
	of.core = "mutated"
	var r *tasks.Result
	of.use = func(p *paused.Process) { r, _ = p.Tasks() }
	v, err := of.ofDump(c)
	if err != nil {
		return false, false
	}
	pending := &tasks.Result{}
	if r != nil {
		pending = r
	}
	p := processOf(v, pending)
	p.Once = true
	if r != nil {
		of.chains = r.Groups
		of.addAsync(v)
		of.view(v, r).write(io.Discard, &of)
	}
	v.write(io.Discard, false)
	reportOf(v, p).write(io.Discard, false)
	return true, r != nil
}

// A damaged dump is shown as far as it can be, in bounded time and memory, without a panic.
func TestMutatedDumps(t *testing.T) {
	for _, kind := range []string{"triage", "withheap"} {
		t.Run(kind, func(t *testing.T) {
			whole := createdump(t, kind)
			_, heap := everything(whole)
			expect.True(t, heap == (kind == "withheap"), "the heap of the whole dump was read: %v", heap)
			reads, heaps, slowest, largest := 0, 0, time.Duration(0), uint64(0)
			for i := range int64(*mutatedDumps) {
				seed := *mutatedSeed + i
				b := mutate(append([]byte(nil), whole...), rand.New(rand.NewSource(seed)))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				read, heap := everything(b)
				took := time.Since(began)
				runtime.ReadMemStats(&after)
				size := after.TotalAlloc - before.TotalAlloc
				expect.True(t, took <= time.Minute && size <= 4<<30,
					"seed %d took %v and %d MB", seed, took, size>>20)
				if read {
					reads++
				}
				if heap {
					heaps++
				}
				slowest, largest = max(slowest, took), max(largest, size)
			}
			t.Logf("%d of %d dumps of %d MB read, %d with their heap; at most %v and %d MB allocated", reads,
				*mutatedDumps, len(whole)>>20, heaps, slowest, largest>>20)
			expect.True(t, reads != 0, "nothing was read")
		})
	}
}

package outside

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// probeFile returns a probe's file whose signals go to this process. answer marks all requests to a
// slot's thread as answered.
func probeFile(t *testing.T) (f *probe.File, answer func(slot int)) {
	f, mem := probeMemory(t)
	return f, func(slot int) { mem.set(slot, slotAnswered, mem.get(slot, slotAsk)) }
}

// probeMemory returns a probe's file and its memory, which has no other user.
func probeMemory(t *testing.T) (f *probe.File, mem shared) {
	t.Helper()
	fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC)
	must.Do(t, err)
	defer unix.Close(fd)
	must.Do(t, unix.Ftruncate(fd, probe.FullSize))
	mem, err = unix.Mmap(fd, 0, probe.FullSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must.Do(t, err)
	t.Cleanup(func() { unix.Munmap(mem) })
	binary.LittleEndian.PutUint64(mem, probe.Magic) // offsets of probe.h
	binary.LittleEndian.PutUint32(mem[8:], probe.Version)
	binary.LittleEndian.PutUint32(mem[372:], uint32(context.Host()))
	f, err = probe.Open(fd, os.Getpid())
	must.Do(t, err)
	t.Cleanup(func() { f.Close() })
	return f, mem
}

// shared is the memory of a probe's file.
type shared []byte

// Offsets of probe.h, in the header and in a slot.
const (
	headTag, headLegacy, headReal, headLeft, headEnding, headRelay = 24, 28, 32, 36, 368, 376
	headPatch, headTimerSignal, headHead, headHold                 = 64, 72, 88, 444
	inHeader                                                       = -1 // in place of a slot
	slotTID, slotLow, slotHigh, slotExtra, slotOp                  = 0, 8, 16, 24, 36
	slotTimer, slotAsk, slotAnswered, slotError, slotBase          = 4, 40, 44, 48, 56
)

func (m shared) word(slot, offset int) *uint32 {
	if slot != inHeader {
		offset += probe.HeaderSize + slot*probe.SlotSize
	}
	return (*uint32)(unsafe.Pointer(&m[offset]))
}

func (m shared) get(slot, offset int) uint32    { return atomic.LoadUint32(m.word(slot, offset)) }
func (m shared) set(slot, offset int, v uint32) { atomic.StoreUint32(m.word(slot, offset), v) }
func (m shared) wide(slot, offset int) uint64 {
	return *(*uint64)(unsafe.Pointer(m.word(slot, offset)))
}

// drawing returns an engine with the random clock and one task for each thread. The tasks' states do
// not change.
func drawing(t *testing.T, all map[uint32]string) (e *Engine, answer func(slot int)) {
	e = &Engine{Table: threads.NewTable(os.Getpid()), legacy: int(unix.SIGURG)}
	e.Came, e.Name, e.Gone = func(*threads.Task) {}, func(*threads.Task) {}, func(*threads.Task) {}
	e.file, answer = probeFile(t)
	e.Period, e.threadListRead = 1e6, time.Now().Add(time.Hour)
	counters := contents(t, "1000000 5000000 7")
	files := map[string]int{"R": contents(t, "1 (thread) R 1"), "S": contents(t, "1 (thread) S 1")}
	for tid, state := range all {
		k := &threads.Task{TID: tid, Stat: counters, StateFile: files[state] + 1,
			Place: -1, Slot: -1, Armed: true}
		e.Tasks[tid] = k
		must.True(t, e.slotOf(k), "no slot")
	}
	return e, answer
}

// threadOf starts a thread that lives until the test ends and handles signals.
func threadOf(t *testing.T) (tid uint32) {
	tid, end := endingThread()
	t.Cleanup(func() { close(end) })
	return tid
}

// Only running threads receive a request, and only after they have answered the previous one. If an answer
// was lost, the thread receives another request. If the thread did not answer, the engine finds out why.
func TestDrawAll(t *testing.T) {
	busy, asleep := threadOf(t), threadOf(t)
	e, answer := drawing(t, map[uint32]string{busy: "R", asleep: "S"})
	k := e.Tasks[busy]
	late := func() {
		for m, _ := e.Kernel.Signals(busy); m.Pending != 0; m, _ = e.Kernel.Signals(busy) {
			time.Sleep(time.Millisecond)
		}
		k.Drawn.Wake -= lostAnswer + 1e6
	}
	for _, step := range []struct {
		name    string
		before  func()
		asked   uint64
		ignored int
	}{
		{"a thread runs", func() {}, 1, 0},
		{"its answer has not come", func() {}, 1, 0},
		{"it has answered, the sample has not come", func() { answer(k.Slot) }, 1, 0},
		{"and is lost", late, 2, 0},
		{"another takes the signal", late, 3, 1},
		{"the question was repeated", func() {}, 3, 1},
		{"the sample has come", func() { answer(k.Slot); e.random.Close(k) }, 4, 1},
	} {
		step.before()
		e.drawAll(0)
		expect.True(t, e.Stats.Asked == step.asked && e.ignored == step.ignored && k.Drawn.Open &&
			!e.Tasks[asleep].Drawn.Open && e.random.open == 1,
			"%s: asked %d times, want %d; %d ignored, want %d; %d open", step.name, e.Stats.Asked, step.asked,
			e.ignored, step.ignored, e.random.open)
	}
	expect.True(t, k.Drawn.Weight == 1 && e.random.late.Moments == 7,
		"weight %d, %d moments", k.Drawn.Weight, e.random.late.Moments)
}

// A late moment is left out, unless most moments are as late.
func TestDrawLate(t *testing.T) {
	busy := threadOf(t)
	e, _ := drawing(t, map[uint32]string{busy: "R"})
	k := e.Tasks[busy]
	for range 10 {
		e.random.recent.Add(0)
	}
	for i, late := range []bool{true, true, true, true, true, true, true, true, true, true, false} {
		e.drawAll(time.Second)
		expect.True(t, k.Drawn.Open != late, "%d: %+v", i, k.Drawn)
	}
	e, _ = drawing(t, map[uint32]string{busy: "R"})
	e.drawAll(latest)
	expect.True(t, e.Tasks[busy].Drawn.Open, "a moment that is hardly late")
}

// Threads that have hardly ever run and have rested for some time take no places of a moment.
func TestDrawResting(t *testing.T) {
	const long = 2 * int64(threads.Longest)
	for _, c := range []struct {
		name  string
		rest  bool
		every int64
		spent uint64
		asked bool
	}{
		{"it has rested for long", true, long, 4e6, false},
		{"it has just run", false, long, 4e6, true},
		{"it has rested for a moment", true, long / 4, 4e6, true},
		{"it has run before", true, long, 4e6 + 1, true},
	} {
		tid := threadOf(t)
		e, _ := drawing(t, map[uint32]string{tid: "R"})
		k := e.Tasks[tid]
		k.Rest, k.Every, k.Last.Cpu = c.rest, c.every, c.spent
		e.drawAll(0)
		expect.Equal(t, k.Drawn.Open, c.asked, "%s: asked", c.name)
	}
}

// A thread that takes the place of one that has ended is found and asked at the next moment.
func TestDrawReplaced(t *testing.T) {
	running := contents(t, "1 (thread) R 1")
	replaced := func(t *testing.T) (tried bool) {
		first, end := endingThread()
		e, _ := drawing(t, nil)
		defer e.Kernel.Close(e.Tasks)
		e.List(time.Now(), 0)
		k := e.Tasks[first]
		k.Armed = true
		before := linksOf(t)
		close(end)
		for e.Kernel.Comm(first) != "" {
			time.Sleep(time.Millisecond)
		}
		second := threadOf(t)
		if linksOf(t) != before || e.Tasks[second] != nil { // Go has started or used another thread
			return false
		}
		e.Came = func(k *threads.Task) {
			if k.TID == second {
				k.Armed, k.StateFile = true, must.Get(unix.Dup(running))(t)+1
			}
		}
		e.drawAll(0)
		if k := e.Tasks[second]; k == nil || !k.Drawn.Open || e.Tasks[first] != nil {
			t.Errorf("the new thread was not asked: %+v", k)
		}
		return true
	}
	for i, tried := 0, false; i < 20000; i++ { // each closes its files
		if t.Run("", func(t *testing.T) { tried = replaced(t) }); tried || t.Failed() {
			return
		}
	}
	t.Error("the number of threads never stayed the same")
}

// endingThread starts a thread that ends when the channel is closed.
func endingThread() (uint32, chan bool) {
	tids, end := make(chan uint32), make(chan bool)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		tids <- uint32(unix.Gettid())
		<-end
	}()
	tid := <-tids
	if tid == uint32(os.Getpid()) { // the main thread never ends: keep it busy
		return endingThread()
	}
	return tid, end
}

// linksOf is the number of this process's threads plus a constant.
func linksOf(t *testing.T) uint64 {
	var st unix.Stat_t
	must.Do(t, unix.Stat("/proc/self/task", &st))
	return uint64(st.Nlink)
}

// With many threads, each draw asks a different random subset, whose weights represent all threads.
func TestDrawSubset(t *testing.T) {
	const all, moments = 500, 20
	running := map[uint32]string{}
	for i := range uint32(all) { // the signals to them go nowhere
		running[1<<30+i] = "R"
	}
	e, _ := drawing(t, running)
	e.Kernel.Dir = -1 // they cannot be listed
	weight, asked := uint64(0), map[uint32]bool{}
	for range moments {
		e.drawAll(0)
		drawn := 0
		for _, k := range e.Tasks {
			if k.Drawn.Open {
				drawn, weight, asked[k.TID] = drawn+1, weight+k.Drawn.Weight, true
				e.random.Close(k)
				k.Slot = -1 // a new slot, never asked
				e.file.Free(k.TID)
				e.slotOf(k)
			}
		}
		must.True(t, drawn == mostDrawn, "%d of %d threads are asked", drawn, all)
	}
	if mean := weight / moments; mean < all*95/100 || mean > all*105/100 || len(asked) < all*9/10 {
		t.Errorf("a moment's samples represent %d threads of %d; %d were asked", mean, all, len(asked))
	}
}

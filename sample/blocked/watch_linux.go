package blocked

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/unwind"
)

// Most bytes to copy and frames to walk, and how often waits are checked.
const (
	maxStack  = 128 << 10
	maxFrames = 128
	tick      = 20 * time.Millisecond
)

// Watch reads the stacks of threads that wait.
type Watch struct {
	pid       int
	threshold time.Duration
	a         *waits.Analysis
	mu        sync.Mutex
	open      map[uint64]*entry // by thread
	stats     Stats
	done      chan struct{}
	ended     chan struct{}

	again   bool            // a later walk may reach further than the last
	paused  *paused.Process // walks whole stacks if the runtime's tables can be read; otherwise nil
	mem     *live.Process
	loader  *live.Loader
	numbers *live.Numbers
	walker  unwind.Walker
	window  memory.Window
	stack   []byte
	frames  [maxFrames]unwind.Frame
}

// entry is an open wait.
type entry struct {
	start    uint64   // ticks
	stack    []uint64 // the event's addresses
	came     time.Time
	tried    bool
	tries    int
	from, to uint64 // CLOCK_MONOTONIC around the copy
	native   *waits.Native
}

// New watches a process. threshold is how long a wait must last.
func New(pid int, threshold time.Duration, a *waits.Analysis) (*Watch, error) {
	if live.Emulated(pid) {
		return nil, errors.New("native frames of waiting threads: the process is an emulator's")
	}
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("native frames of waiting threads: %w", err)
	}
	w := &Watch{pid: pid, threshold: threshold, a: a, open: map[uint64]*entry{}, done: make(chan struct{}),
		ended: make(chan struct{}), mem: mem,
		loader: live.NewLoader(pid), numbers: live.NumbersOf(pid),
		walker: managed.NewWalker(context.Host()), stack: make([]byte, maxStack)}
	go w.serve()
	return w, nil
}

// Close stops watching and returns the totals.
func (w *Watch) Close() Stats {
	close(w.done)
	<-w.ended
	w.mem.Close()
	return w.stats
}

// Begin records the start of a wait.
func (w *Watch) Begin(v *waits.Wait, stack []uint64) {
	if len(stack) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[v.Thread] = &entry{start: v.Start, stack: stack, came: time.Now()}
}

// End records the end of a wait and adds its native frames.
func (w *Watch) End(v *waits.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.open[v.Thread]
	if e == nil || e.start != v.Start {
		return
	}
	delete(w.open, v.Thread)
	switch {
	case e.native == nil:
	case v.State == waits.Unreliable:
		w.stats.Lost++
	case v.State == waits.Complete && e.to >= v.Stop || e.from <= v.Start:
		w.stats.Late++
	default:
		v.Native = w.a.AddNative(e.native)
		w.stats.Joined++
		if len(e.native.Blocks) > 0 {
			w.stats.Whole++
		}
	}
}

func (w *Watch) serve() {
	defer close(w.ended)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-t.C:
			w.round()
		}
	}
}

// round checks the waits that are old enough.
func (w *Watch) round() {
	type due struct {
		tid uint64
		e   *entry
	}
	var list []due
	w.mu.Lock()
	for tid, e := range w.open {
		if !e.tried && time.Since(e.came) >= w.threshold {
			e.tried = true
			list = append(list, due{tid, e})
		}
	}
	w.mu.Unlock()
	if len(list) == 0 {
		return
	}
	maps, err := live.Maps(w.pid)
	if err != nil {
		return
	}
	w.walker.SetTable(w.loader.Table(maps))
	w.runtime(maps)
	for _, d := range list {
		w.look(d.tid, d.e, maps)
	}
}

// look copies a thread's stack and walks its native frames.
func (w *Watch) look(tid uint64, e *entry, maps []live.Mapping) {
	from := monotonic()
	sp, ip, ok := w.where(tid)
	size := uint64(0)
	if ok {
		size = stackSize(maps, sp)
	}
	n := w.mem.ReadSome(w.stack[:min(size, maxStack)], sp)
	sp2, ip2, ok2 := w.where(tid)
	to := monotonic()
	w.mu.Lock()
	if e.tries++; e.tries == 1 {
		w.stats.Tried++
	}
	w.again = false
	switch {
	case !ok || !ok2 || sp != sp2 || ip != ip2:
		w.stats.Ran++
	case n == 0:
		w.stats.Unreadable++
	default:
		e.native = w.walk(sp, ip, n, e.stack)
		e.from, e.to = from, to
		e.tried = !w.again || e.tries >= maxTries
	}
	w.mu.Unlock()
}

// walk returns the native frames of a stack. event holds the addresses of the wait's event. It returns nil if
// the walk does not reach managed code.
func (w *Watch) walk(sp, ip uint64, n int, event []uint64) *waits.Native {
	regs := walk.StoppedAt(context.Host(), sp, ip)
	if native := w.whole(regs, sp, n, event); native != nil {
		return native
	}
	return w.leaves(regs, sp, n, event[0])
}

// leaves returns the frames above managed code.
func (w *Watch) leaves(regs context.Registers, sp uint64, n int, join uint64) *waits.Native {
	w.window.Reset(sp, w.stack[:n])
	at := unwind.Interrupted(&regs)
	r := w.walker.Walk(&at, &w.window, &unwind.Bounds{Low: sp, High: sp + uint64(n)}, w.frames[:])
	var out []uint64
	for i := range w.frames[:r.N] {
		f := &w.frames[i]
		if f.IP == join && !f.Exact {
			return &waits.Native{Leaves: out, Entered: join, Join: join}
		}
		if f.Trust.Doubtful() {
			break
		}
		out = append(out, f.IP)
	}
	if r.Stop == unwind.Managed && !at.Trust.Doubtful() {
		return &waits.Native{Leaves: out, Entered: regs.IP(), Join: join}
	}
	w.stats.Unjoined++
	w.stats.LastStop, w.stats.LastStopAddress = r.Stop, regs.IP()
	return nil
}

// where returns the stack pointer and instruction pointer of the thread that the process calls tid, while it
// is in a system call.
func (w *Watch) where(tid uint64) (sp, ip uint64, ok bool) {
	outer, ok := w.numbers.Outer(uint32(tid))
	if !ok { // a new thread, if the process is in another PID namespace
		w.numbers.Refresh()
		outer, ok = w.numbers.Outer(uint32(tid))
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", w.pid, outer))
	f := strings.Fields(string(b))
	if !ok || err != nil || len(f) < 3 || f[0] == "-1" {
		return 0, 0, false
	}
	sp, err1 := strconv.ParseUint(f[len(f)-2], 0, 64)
	ip, err2 := strconv.ParseUint(f[len(f)-1], 0, 64)
	return sp, ip, err1 == nil && err2 == nil
}

// stackSize returns the number of bytes above sp in its mapping.
func stackSize(maps []live.Mapping, sp uint64) uint64 {
	for i := range maps {
		if m := &maps[i]; m.Start <= sp && sp < m.End {
			return m.End - sp
		}
	}
	return 0
}

// monotonic returns the time by the clock of the events.
func monotonic() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return uint64(t.Nano())
}

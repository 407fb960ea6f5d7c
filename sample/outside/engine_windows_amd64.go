package outside

import (
	"fmt"
	"io"
	"runtime"
	"time"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/stack/merge"
	"golang.org/x/sys/windows"
)

// Engine samples one process.
type Engine struct {
	sampler
	mem    *live.Process
	images *live.Images
	mark   live.LoaderMark // of the module table

	threads map[uint32]*thread
	listed  time.Time
	tried   time.Time // when a runtime was looked for
	swept   time.Time
	context *winContext
	bytes   []byte
	rate    int64 // ticks a second
	seen    windowsStats
	file    *probe.File // nil: no events are wanted
	events  events
	gap     merge.Gap // of the last walk
}

// windowsStats are counters of Windows alone.
type windowsStats struct {
	suspended, held, denied, stubs uint64
}

// New makes an engine for a process, nothing of which is in it.
func New(pid int, cfg Config, to io.Writer) (*Engine, error) {
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("process %d cannot be opened: %w", pid, err)
	}
	e := &Engine{mem: mem, images: mem.Images(), threads: map[uint32]*thread{}, context: newContext(), bytes: make([]byte, firstCopy), rate: tickRate()}
	e.sampler = newSampler(pid, cfg, newWindowsTarget(pid, mem, e.images), to)
	e.cfg.Events = 0 // until the process has taken the file
	e.events.init()
	e.sampler.living = func() bool { return !mem.Ended() }
	e.sampler.refresh = e.know
	e.sampler.between = e.readEvents
	return e, nil
}

func newWindowsTarget(pid int, mem *live.Process, images *live.Images) *target {
	t := newTarget(pid, context.ArchAMD64, mem, nil)
	t.mapped = images.Table
	return t
}

// Run samples until the process ends or Stop, and says why it ended.
func (e *Engine) Run() string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setThreadPriority.Call(uintptr(windows.CurrentThread()), highest) // a thread of the target may wait for us
	defer e.close()
	e.open()
	if f, ok := e.cfg.File.(*probe.File); ok {
		heartbeat := beat(f)
		defer heartbeat.stop()
	}
	return e.paced(e.round, e.end)
}

func (e *Engine) close() {
	e.alarm.close()
	e.s.Raw.Close()
	for _, t := range e.threads {
		windows.CloseHandle(t.handle)
	}
	e.mem.Close()
}

// reread makes the module table anew, if the loader has done anything since.
func (e *Engine) reread() bool {
	mark, ok := e.mem.Mark()
	if !ok || mark == e.mark && e.t.table != nil {
		return false
	}
	e.t.read = time.Time{}
	if !e.t.refresh(e.pid) {
		return false
	}
	e.mark = mark
	e.use()
	return true
}

// know learns what a walk that has just ended has shown to be unknown: new images,
// that there is code where it ended, or where a hijack stub would lead it.
func (e *Engine) know() bool {
	if e.reread() {
		return true
	}
	if !e.covers(e.w.regs.IP()) {
		if to, ok := e.w.pendingReturn(); !ok || !e.covers(to.RIP) {
			return false
		}
	}
	e.t.read = time.Time{}
	ok := e.t.refresh(e.pid)
	e.use()
	return ok
}

// covers takes note of code that no image has, and reports whether that is news.
func (e *Engine) covers(ip uint64) bool { return e.t.table.Find(ip) < 0 && e.images.Cover(ip) }

// A runtime that is being loaded is looked for so often.
const tryEvery = 20 * time.Millisecond

// round visits the threads that are due.
func (e *Engine) round() error {
	now := time.Now()
	e.stats.rounds++
	e.reread()
	if e.t.table == nil {
		return e.s.flush()
	}
	if e.t.tables == nil && now.Sub(e.tried) > tryEvery {
		e.tried = now
		e.t.find()
		e.use()
	}
	e.list(now)
	e.readEvents()
	if e.t.tables != nil && !(e.cfg.NoCPU && e.cfg.NoWall) {
		for _, t := range e.threads {
			if t.due <= now.UnixNano() && !e.stopped.Load() {
				e.visit(t)
			}
		}
	}
	if now.Sub(e.swept) > time.Second {
		e.swept = now
		e.watchOpen()
		e.write()
	}
	return e.s.flush()
}

// readEvents takes what has come of events, as soon as the process is the one whose they
// are.
func (e *Engine) readEvents() {
	if f, ok := e.cfg.File.(*probe.File); ok && e.file == nil && f.Owner() == e.pid {
		e.file, e.cfg.Events = f, f.Wanted()
	}
	if e.file != nil {
		e.file.SetPatch(e.w.hijackStub)
		e.file.Read(e.event)
	}
}

// end sends what is left.
func (e *Engine) end(reason string) string {
	if e.file != nil {
		e.endEvents()
	}
	e.readEvents()
	e.ending = true
	if e.file != nil {
		e.lastEvents()
	}
	e.last()
	e.write()
	e.s.Out.Bye(reason)
	e.s.flush()
	return reason
}

// last accounts for the time since the last visits.
func (e *Engine) last() {
	now := time.Now().UnixNano()
	for _, t := range e.threads {
		if t.rest && !e.cfg.NoWall && now > t.visited {
			e.sendOf(t, merge.Gap(t.stack.gap), t.stack.frames, 0, now-t.visited)
			t.visited = now
		}
	}
}

func (e *Engine) sendOf(t *thread, gap merge.Gap, frames []frame, cpu uint64, wall int64) {
	t.samples++
	e.send(t.tid, gap, frames, cpu, wall)
}

// How often threads are looked for: there is no counter of them.
const listEvery = 100 * time.Millisecond

// list keeps the threads in step with the system's.
func (e *Engine) list(now time.Time) {
	if now.Sub(e.listed) < listEvery {
		return
	}
	e.listed = now
	alive, ok := threadsOf(uint32(e.pid))
	if !ok {
		return
	}
	unknown := false
	for tid := range alive {
		t := e.threads[tid]
		if t == nil {
			if t, ok = openThread(tid, now.UnixNano()); !ok {
				e.seen.denied++
				continue
			}
			e.threads[tid] = t
			e.name(t)
		} else if t.rename(now.UnixNano()) {
			e.name(t)
		}
		unknown = unknown || t.object == 0
	}
	for tid, t := range e.threads {
		if !alive[tid] {
			e.stats.ended(t.samples)
			windows.CloseHandle(t.handle)
			delete(e.threads, tid)
		}
	}
	if unknown && e.t.tables != nil {
		e.t.threads.read()
		for tid, t := range e.threads {
			t.object = e.t.threads.objects[tid]
		}
	}
}

func (e *Engine) name(t *thread) {
	name := t.description()
	if name != t.name || t.read == 0 {
		t.name = name
		e.s.Out.Thread(&wire.Thread{TID: uint64(t.tid), Name: name})
	}
}

// threadsOf are the numbers of a process's threads. Source: Win32 tool help.
func threadsOf(pid uint32) (map[uint32]bool, bool) {
	h, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return nil, false
	}
	defer windows.CloseHandle(h)
	out := map[uint32]bool{}
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(h, &entry); err == nil && len(out) < maxThreads; err = windows.Thread32Next(h, &entry) {
		if entry.OwnerProcessID == pid {
			out[entry.ThreadID] = true
		}
	}
	return out, true
}

// write sends the totals.
func (e *Engine) write() {
	s, w := &e.stats, e.s.Out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.rounds}, {"probe_visits", s.visits}, {"probe_rests", s.rests}, {"probe_changed", s.changed},
		{"probe_unproven", s.unproven}, {"probe_late", s.late}, {"probe_unreadable", s.unreadable}, {"probe_foreign", s.foreign},
		{"probe_cut", s.cut}, {"probe_unnamed", e.s.unnamed}, {"probe_suspended", e.seen.suspended}, {"probe_held", e.seen.held},
		{"probe_hidden", e.seen.denied}, {"probe_stubs", e.seen.stubs}, {"probe_returns", e.w.returns},
	} {
		w.Stats(c.key, c.value)
	}
	e.writeEvents()
	var n []uint64
	for _, t := range e.threads {
		if t.samples > 0 {
			n = append(n, t.samples)
		}
	}
	s.write(w, n)
}

package suspended

import (
	"fmt"
	"io"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Engine samples one process.
type Engine struct {
	sampler.Base
	mem    *live.Process
	images *live.Images
	mark   live.LoaderMark // of the module table

	threads map[uint32]*thread
	listed  time.Time
	tried   time.Time // time of the last search for a runtime
	swept   time.Time
	context *winContext
	bytes   []byte
	rate    int64 // ticks per second
	seen    windowsStats
	events  events.Events
	file    *probe.File // nil if neither events nor copies are wanted
	gap     merge.Gap   // of the last walk
}

// windowsStats are counters for Windows only.
type windowsStats struct {
	suspended uint64 // suspensions
	held      uint64 // suspensions of a thread that was suspended already
	denied    uint64 // threads that could not be opened, counted each time
	stubs     uint64 // samples repeated because a stub was on top
}

// New returns an engine for a process.
func New(pid int, cfg sampler.Config, to io.Writer) (*Engine, error) {
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("process %d cannot be opened: %w", pid, err)
	}
	e := &Engine{mem: mem, images: mem.Images(), threads: map[uint32]*thread{}, context: newContext(),
		bytes: make([]byte, firstCopy), rate: tickRate()}
	e.Base = sampler.New(pid, cfg, newWindowsTarget(pid, mem, e.images), to)
	e.file, _ = cfg.File.(*probe.File)
	e.Config.Events = 0 // until the process has opened the file
	e.events = events.New(&e.Base, e, nil)
	e.Base.Living = func() bool { return !mem.Ended() }
	e.Base.Refresh = e.know
	e.Base.Between = e.readEvents
	return e, nil
}

func newWindowsTarget(pid int, mem *live.Process, images *live.Images) *target.Process {
	t := target.New(pid, context.ArchAMD64, mem, nil)
	t.Mapped = images.Table
	return t
}

// Run samples until the process ends or Stop is called, and returns the reason.
func (e *Engine) Run() string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// a high priority shortens the time in which a thread of the target is suspended
	setThreadPriority.Call(uintptr(windows.CurrentThread()), highest)
	defer e.Close()
	e.Open()
	if e.file != nil {
		heartbeat := events.StartHeartbeat(e.file, false)
		defer heartbeat.Stop()
	}
	return e.RunPaced(e.round, e.end)
}

func (e *Engine) Close() {
	e.Alarm.Close()
	e.Stream.Raw.Close()
	for _, t := range e.threads {
		windows.CloseHandle(t.handle)
	}
	e.mem.Close()
}

// reread rebuilds the module table if an image was loaded or unloaded. It reports whether it did.
func (e *Engine) reread() bool {
	mark, ok := e.mem.Mark()
	if !ok || mark == e.mark && e.Target.Table != nil {
		return false
	}
	e.Target.Read = time.Time{}
	if !e.Target.Refresh(e.PID) {
		return false
	}
	e.mark = mark
	e.Use()
	return true
}

// know looks for what the last walk lacked: new images, code at the address where the walk ended, or code at
// the return address of a hijack stub. It reports whether a repeated walk may succeed.
func (e *Engine) know() bool {
	if e.reread() {
		return true
	}
	if !e.covers(e.Walker.Regs.IP()) {
		if to, ok := e.Walker.PendingReturn(); !ok || !e.covers(to.RIP) {
			return false
		}
	}
	e.Target.Read = time.Time{}
	ok := e.Target.Refresh(e.PID)
	e.Use()
	return ok
}

// covers marks ip as code if it is outside all images, and reports whether that is new.
func (e *Engine) covers(ip uint64) bool { return e.Target.Table.Find(ip) < 0 && e.images.Cover(ip) }

// How often to look for a runtime that is being loaded.
const tryEvery = 20 * time.Millisecond

// round samples the threads that are due.
func (e *Engine) round() error {
	now := time.Now()
	e.Stats.Rounds++
	e.reread()
	if e.Target.Table == nil {
		return e.Stream.Push()
	}
	if e.Target.Tables == nil && now.Sub(e.tried) > tryEvery {
		e.tried = now
		e.Target.Find()
		e.Use()
	}
	e.list(now)
	e.readEvents()
	if e.Target.Tables != nil && !(e.Config.NoCPU && e.Config.NoWall) {
		for _, t := range e.threads {
			if t.due <= now.UnixNano() && !e.Stopped.Load() {
				e.poll(t)
			}
		}
	}
	if now.Sub(e.swept) > time.Second {
		e.swept = now
		e.events.WatchOpen()
		e.write()
	}
	return e.Stream.Push()
}

// readEvents handles new events, once the process has opened the file.
func (e *Engine) readEvents() {
	if e.file != nil && e.events.File == nil && e.file.Owner() == e.PID {
		e.events.File, e.Config.Events = e.file, e.file.Wanted()
	}
	if e.events.File != nil {
		e.events.File.SetPatch(e.Walker.HijackStub)
		e.events.File.Read(e.events.Take)
		e.events.WalkPending()
	}
}

// end sends the remaining data.
func (e *Engine) end(reason string) string {
	if e.events.File != nil {
		e.events.End()
	}
	e.readEvents()
	e.Ending = true
	e.events.WalkPending()
	if e.events.File != nil {
		e.events.Last()
	}
	e.last()
	e.write()
	e.Stream.Out.Bye(reason)
	e.Stream.Push()
	return reason
}

// last accounts for the time since the last polls.
func (e *Engine) last() {
	now := time.Now().UnixNano()
	for _, t := range e.threads {
		if t.rest && !e.Config.NoWall && now > t.polled {
			e.sendOf(t, merge.Gap(t.stack.Gap), t.stack.Frames, 0, now-t.polled)
			t.polled = now
		}
	}
}

func (e *Engine) sendOf(t *thread, gap merge.Gap, frames []wire.Frame, cpu uint64, wall int64) {
	t.samples++
	e.Send(t.tid, gap, frames, cpu, wall)
}

// How often threads are listed: the system has no counter of them.
const listEvery = 100 * time.Millisecond

// list keeps the threads in step with the system's.
func (e *Engine) list(now time.Time) {
	if now.Sub(e.listed) < listEvery {
		return
	}
	e.listed = now
	alive, ok := threadsOf(uint32(e.PID))
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
			e.Stats.Ended(t.samples)
			windows.CloseHandle(t.handle)
			delete(e.threads, tid)
		}
	}
	if unknown && e.Target.Tables != nil {
		e.Target.Threads.Read()
		for tid, t := range e.threads {
			t.object = e.Target.Threads.Objects[tid]
		}
	}
}

func (e *Engine) name(t *thread) {
	name := t.description()
	if name != t.name || t.read == 0 {
		t.name = name
		e.Stream.Out.Thread(&wire.Thread{TID: uint64(t.tid), Name: name})
	}
}

// threadsOf returns the numbers of a process's threads. Source: Win32 tool help.
func threadsOf(pid uint32) (map[uint32]bool, bool) {
	h, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return nil, false
	}
	defer windows.CloseHandle(h)
	out := map[uint32]bool{}
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(h, &entry); err == nil &&
		len(out) < target.MaxThreads; err = windows.Thread32Next(h, &entry) {
		if entry.OwnerProcessID == pid {
			out[entry.ThreadID] = true
		}
	}
	return out, true
}

// write sends the totals.
func (e *Engine) write() {
	s, w := &e.Stats, e.Stream.Out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.Rounds}, {"probe_visits", s.Polls},
		{"probe_rests", s.Rests}, {"probe_changed", s.Changed},
		{"probe_unproven", s.Unproven}, {"probe_late", s.Late},
		{"probe_unreadable", s.Unreadable}, {"probe_foreign", s.Foreign},
		{"probe_cut", s.Cut}, {"probe_unnamed", e.Stream.Unnamed},
		{"probe_suspended", e.seen.suspended}, {"probe_held", e.seen.held},
		{"probe_hidden", e.seen.denied}, {"probe_stubs", e.seen.stubs}, {"probe_returns", e.Walker.Returns},
	} {
		w.Counter(c.key, c.value)
	}
	e.events.WriteTotals()
	var n []uint64
	for _, t := range e.threads {
		if t.samples > 0 {
			n = append(n, t.samples)
		}
	}
	s.Write(w, n)
}

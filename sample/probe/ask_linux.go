package probe

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	firstWait = 20 * time.Millisecond
	// readLimit bounds the time of one read, over all threads that are asked. The tool waits for that time.
	readLimit = time.Second
	maxAsked  = 64 // attempts for one read
)

// answered asks one thread after another for a read, until one answers or the limit is reached.
func (m *Memory) answered(r *read, mappings bool) Answer {
	end, wait := m.now().Add(m.limit), firstWait
	for i, n := 0, 0; i < maxAsked && m.now().Before(end); i, n = i+1, n+1 {
		a, ok := m.c.Reader(n)
		if !ok && n == 0 {
			break
		}
		if !ok { // once more from the first thread, with a longer wait
			n, wait = -1, 4*wait
			continue
		}
		done, lost := m.attempt(r, a, mappings, min(wait, end.Sub(m.now())))
		if done {
			return Whole
		}
		if lost || !m.c.Living() {
			break
		}
	}
	return m.lost()
}

// attempt asks one thread. If the thread does not take the request in time, the request is withdrawn, and a
// late signal finds nothing to do. A request that was taken cannot be withdrawn, because the thread may still
// write to it. It is lost until the thread is done.
func (m *Memory) attempt(r *read, a Reader, mappings bool, wait time.Duration) (done, lost bool) {
	r.what = readMemory
	if a.Filtered {
		r.what = readPiped
	}
	if mappings {
		r.what = readMappings
	}
	m.seq += readStates
	asked := m.seq | readAsked
	atomic.StoreUint32(&r.tid, m.f.inner(a.TID))
	m.point("ask")
	atomic.StoreUint32(&r.state, asked)
	m.Stats.Asked++
	if m.send(a) != nil {
		wait = 0
	}
	if m.await(r, wait) {
		return true, false
	}
	m.point("withdraw")
	if atomic.CompareAndSwapUint32(&r.state, asked, m.seq|readFree) {
		return false, false
	}
	if m.await(r, m.limit) {
		return true, false
	}
	return false, true
}

// await waits for the answer to the current request, and reports whether it came.
func (m *Memory) await(r *read, limit time.Duration) bool {
	for end := m.now().Add(limit); ; {
		m.point("look")
		state := atomic.LoadUint32(&r.state)
		left := end.Sub(m.now())
		if state == m.seq|readDone || left <= 0 || state != m.seq|readAsked && state != m.seq|readTaken {
			return state == m.seq|readDone
		}
		m.wait(&r.state, state, min(left, firstWait))
		if left < limit-firstWait && !m.c.Living() {
			return atomic.LoadUint32(&r.state) == m.seq|readDone
		}
	}
}

func (m *Memory) point(what string) {
	if m.step != nil {
		m.step(what)
	}
}

// futexWait waits until a word changes from prev.
func futexWait(word *uint32, prev uint32, limit time.Duration) {
	t := unix.NsecToTimespec(int64(limit))
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 0, uintptr(prev),
		uintptr(unsafe.Pointer(&t)), 0, 0)
}

// signal sends a thread the signal that makes it check for a read request.
func (f *File) signal(a Reader) error { return f.send(a.TID, a.Signal, readCookie) }

package probe

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Memory reads the target through its probe, for a tool that the kernel does not let read it. A signal makes
// a thread of the target copy the memory. Memory is not safe for concurrent use.
//
// The signal is the main cost, so the bytes around a small read are copied too. The result is the same as
// that of separate reads, only earlier: one copy is held at a time, so nothing is older than the previous
// read; and no byte of a copy is returned twice, so a repeated read detects changes.
type Memory struct {
	f     *File
	c     Choice
	limit time.Duration
	send  func(Reader) error
	wait  func(word *uint32, prev uint32, limit time.Duration)
	now   func() time.Time
	step  func(what string) // for tests: others may run before what follows; nil

	open   sync.Mutex // held while a request uses the File
	closed bool       // the File may be unmapped: requests fail

	seq   uint32
	at    uint64 // address of held's first byte
	held  []byte
	given [window]bool
	page  [window]byte

	Stats ReadStats
}

// Choice chooses the threads of the target that serve a Memory.
type Choice interface {
	// Reader returns the nth best thread that can take our signal now, or false.
	Reader(n int) (a Reader, ok bool)
	// Living reports whether the process is still the one that was opened.
	Living() bool
}

// Reader is a thread of the target.
type Reader struct {
	TID      uint32
	Signal   int
	Filtered bool // it has a system call filter
}

// ReadStats count what was read.
type ReadStats struct {
	Reads      uint64 // answered
	Asked      uint64 // signals sent
	Unanswered uint64 // requests without an answer
	Held       uint64 // reads served from held
	Nanos      uint64 // total time from request to answer
	Copying    uint64 // the part of it in the handler
}

// Answer is the result of a read.
type Answer uint8

const (
	Whole      Answer = iota
	Short             // the address, or one after it, cannot be read
	Unanswered        // no thread took the signal
	Gone              // the process has ended, or has called exec
)

const (
	window = 4096 // bytes held
	before = 1024 // most of it that precedes the requested address, in the same page
)

// The mirror of src/read.h.
const (
	readRequests = 2
	readAt       = 2048
	readSize     = 64
	readRoom     = 1 << 20
	readCookie   = 0x7ead0000
	FullSize     = FileSize + readRequests*readRoom

	readFree   = 0
	readAsked  = 1
	readTaken  = 2
	readDone   = 3
	readStates = 4

	readMemory   = 1
	readPiped    = 2
	readMappings = 3
)

// read mirrors struct sw_read.
type read struct {
	state, tid uint32
	from       uint64
	size, what uint32
	got, nanos uint32
}

// Memory returns the target's memory.
func (f *File) Memory(c Choice) *Memory {
	return &Memory{f: f, c: c, limit: readLimit, send: f.signal, wait: futexWait, now: time.Now}
}

func (f *File) request(i int) *read { return (*read)(unsafe.Pointer(&f.data[readAt+i*readSize])) }

// Close waits for a request that runs. Later ones answer Gone, so that the File can be closed. Close is
// safe for concurrent use.
func (m *Memory) Close() error {
	m.open.Lock()
	defer m.open.Unlock()
	m.closed = true
	return nil
}

// ReadAt implements memory.Reader.
func (m *Memory) ReadAt(p []byte, addr uint64) bool { return m.ReadSome(p, addr) == len(p) }

// ReadSome implements live.Memory.
func (m *Memory) ReadSome(p []byte, addr uint64) int {
	n, _ := m.Read(p, addr)
	return n
}

// Read reads as much of p as is readable without a gap. The answer is Whole, or why p is not full.
func (m *Memory) Read(p []byte, addr uint64) (n int, a Answer) {
	if len(p) == 0 {
		return 0, Whole
	}
	if addr+uint64(len(p)) < addr || int64(addr) < 0 {
		return 0, Short
	}
	if m.give(p, addr) {
		m.Stats.Held++
		return len(p), Whole
	}
	if len(p) > window-before {
		return m.large(p, addr)
	}
	from := max(addr&^(window-1), addr-min(addr, before))
	m.Renew()
	n, a = m.request(m.page[:], from, false)
	if a > Short {
		return 0, a
	}
	m.at, m.held = from, m.page[:n]
	if m.give(p, addr) {
		return len(p), Whole
	}
	if n = copy(p, m.held[min(addr-from, uint64(n)):]); n > 0 {
		m.Renew()
	}
	return n, Short
}

// Renew drops held bytes: later reads return current memory.
func (m *Memory) Renew() {
	if len(m.held) > 0 {
		m.held = nil
		clear(m.given[:])
	}
}

// give copies held bytes, once.
func (m *Memory) give(p []byte, addr uint64) bool {
	off := addr - m.at
	if addr < m.at || off+uint64(len(p)) > uint64(len(m.held)) {
		return false
	}
	given := m.given[off : off+uint64(len(p))]
	for _, g := range given {
		if g {
			return false
		}
	}
	for i := range given {
		given[i] = true
	}
	copy(p, m.held[off:])
	return true
}

// large reads with requests of its own.
func (m *Memory) large(p []byte, addr uint64) (n int, a Answer) {
	m.Renew()
	for n < len(p) && a == Whole {
		var got int
		got, a = m.request(p[n:min(len(p), n+readRoom)], addr+uint64(n), false)
		n += got
	}
	return n, a
}

// Mappings returns the text of the target's mappings, which the target may read itself.
func (m *Memory) Mappings() (text []byte, a Answer) {
	m.Renew()
	b := make([]byte, readRoom)
	n, a := m.request(b, 0, true)
	switch {
	case a > Short:
		return nil, a
	case n == 0 || n == len(b): // the text is longer than the buffer
		return nil, Short
	}
	return b[:n], Whole
}

// request makes a thread answer, and copies the answer.
func (m *Memory) request(p []byte, addr uint64, mappings bool) (n int, a Answer) {
	m.open.Lock()
	defer m.open.Unlock()
	if m.closed {
		return 0, Gone
	}
	i := m.free()
	if i < 0 {
		m.Stats.Unanswered++
		return 0, m.lost()
	}
	r := m.f.request(i)
	r.from, r.size = addr, uint32(len(p))
	begin := m.now()
	if a = m.answered(r, mappings); a != Whole {
		m.Stats.Unanswered++
		return 0, a
	}
	m.Stats.Reads++
	m.Stats.Nanos += uint64(m.now().Sub(begin))
	m.Stats.Copying += uint64(r.nanos)
	if n = copy(p, m.f.data[FileSize+i*readRoom:][:min(r.got, readRoom)]); n < len(p) {
		return n, Short
	}
	return n, Whole
}

// free returns an unused request, or -1.
func (m *Memory) free() int {
	for i := range readRequests {
		if s := atomic.LoadUint32(&m.f.request(i).state) % readStates; s == readFree || s == readDone {
			return i
		}
	}
	return -1
}

func (m *Memory) lost() Answer {
	if !m.c.Living() {
		return Gone
	}
	return Unanswered
}

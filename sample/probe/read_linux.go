package probe

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Memory reads the target through the probe in it, for a tool that the kernel does not let
// read it. A thread of the target is asked by a signal, and its handler copies. It is not
// safe for concurrent use.
//
// What lies around a small read is copied with it, since asking is what costs. A reader
// sees what it would see if it had read by itself, only sooner: one copy is held at a time,
// so that what is read later was never copied before; and no byte is given twice of the same
// copy, so that who reads again, to see whether something has changed, does see it.
type Memory struct {
	f     *File
	c     Choice
	limit time.Duration
	send  func(Reader) error
	wait  func(word *uint32, was uint32, limit time.Duration)
	now   func() time.Time
	step  func(what string) // of tests: others may run before what follows; nil

	seq   uint32
	at    uint64 // of held's first byte
	held  []byte
	given [window]bool
	page  [window]byte

	Stats ReadStats
}

// Choice is what a Memory wants to know of the target.
type Choice interface {
	// Reader is a thread that takes our signal now, the best one first; false if there is
	// no nth.
	Reader(n int) (a Reader, ok bool)
	// Living reports whether the process is the one that was opened.
	Living() bool
}

// Reader is a thread of the target.
type Reader struct {
	TID      uint32
	Signal   int
	Filtered bool // it has a filter of its system calls
}

// ReadStats count what was read.
type ReadStats struct {
	Reads      uint64 // answered
	Asked      uint64 // signals sent
	Unanswered uint64 // reads given up
	Held       uint64 // reads of what was held
	Nanos      uint64 // from asking to the answer, all together
	Copying    uint64 // of them in the handler
}

// Answer says what came of a read.
type Answer uint8

const (
	Whole      Answer = iota
	Short             // the address, or one behind it, cannot be read
	Unanswered        // no thread has taken the signal
	Gone              // the process has ended, or is another program now
)

const (
	window = 4096 // held
	before = 1024 // of it lie before what is asked, in the same page
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

// Memory is the target's.
func (f *File) Memory(c Choice) *Memory {
	return &Memory{f: f, c: c, limit: readLimit, send: f.signal, wait: futexWait, now: time.Now}
}

func (f *File) request(i int) *read { return (*read)(unsafe.Pointer(&f.data[readAt+i*readSize])) }

// Close does nothing: the file is the File's.
func (m *Memory) Close() error { return nil }

// ReadAt implements memory.Reader.
func (m *Memory) ReadAt(p []byte, addr uint64) bool { return m.ReadSome(p, addr) == len(p) }

// ReadSome implements live.Memory.
func (m *Memory) ReadSome(p []byte, addr uint64) int {
	n, _ := m.Read(p, addr)
	return n
}

// Read reads as much of p as is readable without a gap, and says why it is not all.
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

// Renew drops what is held: what is read from now on is what is there from now on.
func (m *Memory) Renew() {
	if len(m.held) > 0 {
		m.held = nil
		clear(m.given[:])
	}
}

// give copies what is held, once.
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

// large reads what is worth a request of its own, or several.
func (m *Memory) large(p []byte, addr uint64) (n int, a Answer) {
	m.Renew()
	for n < len(p) && a == Whole {
		var got int
		got, a = m.request(p[n:min(len(p), n+readRoom)], addr+uint64(n), false)
		n += got
	}
	return n, a
}

// Mappings is the text of the target's mappings, which it may read itself.
func (m *Memory) Mappings() (text []byte, a Answer) {
	m.Renew()
	b := make([]byte, readRoom)
	n, a := m.request(b, 0, true)
	switch {
	case a > Short:
		return nil, a
	case n == 0 || n == len(b): // it goes on behind the room
		return nil, Short
	}
	return b[:n], Whole
}

// request has a thread answer, and copies that.
func (m *Memory) request(p []byte, addr uint64, mappings bool) (n int, a Answer) {
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

// free is a request that nobody has taken and not answered, -1 if there is none.
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

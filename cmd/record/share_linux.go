package record

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
)

// A process can be in several recordings at once. The probe serves one tool. That tool listens on
// a socket, and gives the stream of samples to other recordings of the same process: what has been
// told of modules, methods, and threads so far, and from then on each sample. A recording that
// reads too slowly loses samples, and then its connection. It never slows the first one.

// shareAddress is the abstract socket of the recording of a process.
func shareAddress(pid int) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@seedwalk-recording-%d", pid)}
}

// joinMagic begins the request of a recording and the answer to it.
const joinMagic = "swjoin1\n"

// Bounds of sharing.
const (
	maxJoined   = 8
	joinLimit   = 2 * time.Second // for a request, and for one write
	maxUnsent   = 8 << 20         // bytes; then samples are dropped
	maxUnsentAt = 16 << 20        // and then the connection is
	flushUnsent = 1 << 15
	shareEvery  = 200 * time.Millisecond // between two writes, while there is little
)

// request is what a recording asks of the one that samples the process.
type request struct {
	cpu, wall, events bool
	until             time.Time // processor time counts until then; zero = until it wants no more
}

func (q request) encode() []byte {
	return binary.LittleEndian.AppendUint64([]byte(joinMagic), bit(q.cpu)|bit(q.wall)<<1|bit(q.events)<<2|untilBits(q.until))
}

func decodeRequest(b []byte) (q request, ok bool) {
	if len(b) != 16 || string(b[:8]) != joinMagic {
		return q, false
	}
	flags := binary.LittleEndian.Uint64(b[8:])
	q = request{cpu: flags&1 != 0, wall: flags&2 != 0, events: flags&4 != 0}
	if ms := flags >> untilShift; ms != 0 {
		q.until = time.UnixMilli(int64(ms))
	}
	return q, true
}

const untilShift = 8

func untilBits(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli()+1) << untilShift
}

// sharing gives the stream of one process to other recordings.
type sharing struct {
	p        *process
	listener *net.UnixListener
	mu       sync.Mutex
	joined   []*joined
	closed   bool
}

// share listens for other recordings of a process. It returns nil if that is not possible.
func share(p *process) sharer {
	l, err := net.ListenUnix("unix", shareAddress(p.PID))
	if err != nil {
		return nil
	}
	s := &sharing{p: p, listener: l}
	go s.accept()
	return s
}

func (s *sharing) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		go s.greet(c)
	}
}

// mayJoin reports whether a connection is of our own user or of root.
func mayJoin(c *net.UnixConn) (unix.Ucred, bool) {
	cred, err := peer(c)
	return cred, err == nil && (cred.Uid == 0 || int(cred.Uid) == os.Geteuid())
}

// greet reads a request and lets its recording join.
func (s *sharing) greet(c *net.UnixConn) {
	c.SetDeadline(time.Now().Add(joinLimit))
	b := make([]byte, 16)
	_, allowed := mayJoin(c)
	if !allowed || !readFull(c, b) {
		c.Close()
		return
	}
	q, ok := decodeRequest(b)
	if !ok || !s.join(c, q) {
		c.Close()
	}
}

func readFull(c net.Conn, b []byte) bool {
	for len(b) > 0 {
		n, err := c.Read(b)
		if b = b[n:]; err != nil && len(b) > 0 {
			return false
		}
	}
	return true
}

// join adds a recording. What the process has told so far is sent to it first.
func (s *sharing) join(c *net.UnixConn, q request) bool {
	j := &joined{c: c, q: q, since: time.Now().UnixNano(), w: wire.NewWriter(nil), wake: make(chan struct{}, 1), done: make(chan struct{}), times: newTimes(s.p.PID)}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.joined) >= maxJoined {
		return false
	}
	j.buf = append(j.buf, joinMagic...)
	s.p.Tables(j.w)
	j.notify()
	s.joined = append(s.joined, j)
	if !q.until.IsZero() {
		j.timer = time.AfterFunc(time.Until(q.until), j.endTimes)
	}
	go j.write()
	go j.awaitEnd()
	return true
}

// pass gives a message to the recordings that have joined. The caller holds the process's lock.
func (s *sharing) pass(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.joined[:0]
	for _, j := range s.joined {
		if j.take(m) {
			kept = append(kept, j)
		}
	}
	clear(s.joined[len(kept):])
	s.joined = kept
}

// end ends the sharing: the recording of this process is over.
func (s *sharing) end() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, j := range s.joined {
		j.finish("the recording that sampled the process has ended")
	}
	s.joined = nil
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

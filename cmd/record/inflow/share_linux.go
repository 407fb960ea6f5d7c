package inflow

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
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

// Request is what a recording asks of the one that samples the process.
type Request struct {
	CPU, Wall, events bool
	Until             time.Time // processor time counts until then; zero = until it wants no more
}

func (q Request) encode() []byte {
	return binary.LittleEndian.AppendUint64([]byte(joinMagic), bit(q.CPU)|bit(q.Wall)<<1|bit(q.events)<<2|untilBits(q.Until))
}

func decodeRequest(b []byte) (q Request, ok bool) {
	if len(b) != 16 || string(b[:8]) != joinMagic {
		return q, false
	}
	flags := binary.LittleEndian.Uint64(b[8:])
	q = Request{CPU: flags&1 != 0, Wall: flags&2 != 0, events: flags&4 != 0}
	if ms := flags >> untilShift; ms != 0 {
		q.Until = time.UnixMilli(int64(ms))
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
	p        *Process
	listener *net.UnixListener
	mu       sync.Mutex
	joined   []*joined
	closed   bool
}

// Share listens for other recordings of a process. It returns nil if that is not possible.
func Share(p *Process) Sharer {
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
	cred, err := listen.Peer(c)
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
func (s *sharing) join(c *net.UnixConn, q Request) bool {
	j := &joined{c: c, q: q, since: time.Now().UnixNano(), w: wire.NewWriter(nil), wake: make(chan struct{}, 1), done: make(chan struct{}), times: newTimes(s.p.PID)}
	s.p.Mu.Lock()
	defer s.p.Mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.joined) >= maxJoined {
		return false
	}
	j.buf = append(j.buf, joinMagic...)
	s.p.Tables(j.w)
	j.notify()
	s.joined = append(s.joined, j)
	if !q.Until.IsZero() {
		j.timer = time.AfterFunc(time.Until(q.Until), j.endTimes)
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

// Join connects to another recording of the process. It returns nil if there is none.
func Join(pid int, q Request) (c *net.UnixConn, tool int) {
	c, err := net.DialUnix("unix", nil, shareAddress(pid))
	if err != nil {
		return nil, 0
	}
	cred, allowed := mayJoin(c) // another user may have taken the name
	c.SetDeadline(time.Now().Add(joinLimit))
	answer := make([]byte, len(joinMagic))
	if _, err = c.Write(q.encode()); err != nil || !allowed || !readFull(c, answer) || string(answer) != joinMagic {
		c.Close()
		return nil, 0
	}
	c.SetDeadline(time.Time{})
	return c, int(cred.Pid)
}

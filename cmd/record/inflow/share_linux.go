package inflow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/report/wire"
)

// A process can be in several recordings at once. The probe serves one tool. That tool listens on
// a socket, and passes the stream of samples to other recordings of the same process: first the known
// modules, methods, and threads, then each new sample. A recording that reads too slowly loses samples,
// and then its connection. It never slows the first one.

// shareAddress returns the address of the abstract socket of a process's recording.
func shareAddress(pid int) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@seedwalk-recording-%d", pid)}
}

// joinMagic begins the request of a recording and the answer to it.
const joinMagic = "swjoin2\n"

// Bounds of sharing.
const (
	maxJoined   = 8
	maxUnsent   = 8 << 20  // bytes; then samples are dropped
	maxUnsentAt = 16 << 20 // bytes; then the connection is closed
	flushUnsent = 1 << 15
	shareEvery  = 200 * time.Millisecond // between two writes to another tool, while there is little
	shareOwn    = 500 * time.Millisecond // between two writes inside the agent, while there is little
)

// endLimit bounds the wait for the last messages.
var endLimit = 3 * time.Second

// joinLimit bounds a request, and one write, between two tools.
var joinLimit = 10 * time.Second

// Request is what a recording asks of the one that samples the process.
type Request struct {
	CPU, Wall, events bool
	From              time.Time // samples and CPU time count from then; zero = from now
	Until             time.Time // the same until then; zero = until the recording closes the connection
}

const requestBytes = 32

func (q Request) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte(joinMagic), bit(q.CPU)|bit(q.Wall)<<1|bit(q.events)<<2)
	for _, t := range [...]time.Time{q.From, q.Until} {
		nanos := uint64(0)
		if !t.IsZero() {
			nanos = uint64(t.UnixNano())
		}
		b = binary.LittleEndian.AppendUint64(b, nanos)
	}
	return b
}

func decodeRequest(b []byte) (q Request, ok bool) {
	if len(b) != requestBytes || string(b[:8]) != joinMagic {
		return q, false
	}
	flags := binary.LittleEndian.Uint64(b[8:])
	q = Request{CPU: flags&1 != 0, Wall: flags&2 != 0, events: flags&4 != 0}
	for i, t := range [...]*time.Time{&q.From, &q.Until} {
		if nanos := int64(binary.LittleEndian.Uint64(b[16+8*i:])); nanos > 0 {
			*t = time.Unix(0, nanos)
		}
	}
	return q, true
}

// sharing gives the stream of one process to other recordings.
type sharing struct {
	p        *Process
	listener *net.UnixListener
	first    clocks // when the sharing began
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
	s := &sharing{p: p, listener: l, first: measure(p.PID)}
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

// mayJoin reports whether the other end of a connection belongs to our own user or to root.
func mayJoin(c *net.UnixConn) (unix.Ucred, bool) {
	cred, err := listen.Peer(c)
	return cred, err == nil && (cred.Uid == 0 || int(cred.Uid) == os.Geteuid())
}

// greet reads a request and lets its recording join.
func (s *sharing) greet(c *net.UnixConn) {
	b := make([]byte, requestBytes)
	cred, allowed := mayJoin(c)
	limitJoin(c, &cred)
	if !allowed || !readFull(c, b) {
		c.Close()
		return
	}
	q, ok := decodeRequest(b)
	if !ok || !s.join(c, q, int(cred.Pid) == os.Getpid()) {
		c.Close()
	}
}

func readFull(c net.Conn, b []byte) bool {
	_, err := io.ReadFull(c, b)
	return err == nil
}

// join adds a recording, and passes it the known modules, methods, and threads first. It returns false
// if the sharing has ended or there are too many recordings.
func (s *sharing) join(c *net.UnixConn, q Request, own bool) bool {
	now := time.Now()
	j := &joined{c: c, q: q, pid: s.p.PID, own: own, since: max(now.UnixNano(), q.begin()),
		set: int64(s.p.clockSet(now)),
		w:   wire.NewWriter(nil), wake: make(chan struct{}, 1), done: make(chan struct{}),
		times: newTimes(s.p.PID, &s.first)}
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
	j.schedule()
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

// end ends the sharing: the recording of this process is over. It waits until the others have read the rest,
// because this tool may end now.
func (s *sharing) end() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	all := s.joined
	s.joined = nil
	for _, j := range all {
		j.finish("the recording that sampled the process has ended")
	}
	s.mu.Unlock()
	limit := time.After(endLimit)
	for _, j := range all {
		select {
		case <-j.done:
		case <-limit:
			return
		}
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// ErrNoRecording means that no recording of a process can be joined.
var ErrNoRecording = errors.New("no recording of it is running")

// Join connects to another recording of the process. tool is the process that makes that recording.
func Join(pid int, q Request) (c *net.UnixConn, tool int, err error) {
	c, err = net.DialUnix("unix", nil, shareAddress(pid))
	if err != nil {
		return nil, 0, ErrNoRecording
	}
	cred, allowed := mayJoin(c) // another user may have taken the name
	limitJoin(c, &cred)
	answer := make([]byte, len(joinMagic))
	switch _, err = c.Write(q.encode()); {
	case !allowed:
		err = ErrNoRecording
	case err != nil || !readFull(c, answer) || string(answer) != joinMagic:
		err = fmt.Errorf("the recording by process %d shares no samples: it is ending, it has %d readers already, or it did not answer within %v", cred.Pid, maxJoined, joinLimit)
	default:
		c.SetDeadline(time.Time{})
		return c, int(cred.Pid), nil
	}
	c.Close()
	return nil, 0, err
}

// Claim reserves the right to load the probe into a process, so that recordings that begin at the same
// moment do not load two. It returns false while another recording has the right. A tool that is killed
// loses it.
func Claim(pid int) (release func(), ok bool) {
	c, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@seedwalk-attaching-%d", pid)})
	if err != nil { // without such sockets, there is nothing to reserve
		return func() {}, !errors.Is(err, unix.EADDRINUSE)
	}
	return func() { c.Close() }, true
}

// limitJoin bounds how long the other end may take. There is no bound if the other end is in this
// process: it always answers, however busy the machine is.
func limitJoin(c *net.UnixConn, other *unix.Ucred) {
	if int(other.Pid) != os.Getpid() {
		c.SetDeadline(time.Now().Add(joinLimit))
	}
}

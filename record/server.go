package record

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what sockaddr_un holds, less the terminating zero (unix(7)).
const maxSocketPath = 107

// server accepts the profilers' connections.
type server struct {
	dir       string
	path      string
	listener  *net.UnixListener
	keepProbe bool
	connected chan struct{} // closed at the first connection

	mu        sync.Mutex
	conns     []*net.UnixConn
	processes []*process
	refused   []string
	settling  bool
	readers   sync.WaitGroup
	accepting chan struct{} // closed when the accepting goroutine has ended
}

// listen makes a private directory with a socket in it and accepts.
func listen(dir string, keepProbe bool) (*server, error) {
	private, err := os.MkdirTemp(dir, "seedwalk-") // mode 0700
	if err != nil {
		return nil, err
	}
	path := filepath.Join(private, "socket")
	if len(path) > maxSocketPath {
		os.Remove(private)
		if dir == "/tmp" {
			return nil, fmt.Errorf("socket path %s is longer than %d bytes", path, maxSocketPath)
		}
		return listen("/tmp", keepProbe)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		os.RemoveAll(private)
		return nil, err
	}
	s := &server{dir: private, keepProbe: keepProbe, path: path, listener: l, connected: make(chan struct{}), accepting: make(chan struct{})}
	go s.accept()
	return s, nil
}

func (s *server) accept() {
	defer close(s.accepting)
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		s.add(c)
	}
}

// add reads a connection if it comes from our own user.
func (s *server) add(c *net.UnixConn) {
	cred, err := peer(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		s.refused = append(s.refused, fmt.Sprintf("a connection of another user was refused (%+v, %v)", cred, err))
		c.Close()
		return
	}
	if len(s.processes) == 0 {
		close(s.connected)
	}
	p := newProcess(int(cred.Pid), processName(int(cred.Pid)))
	p.keepProbe = s.keepProbe
	s.processes = append(s.processes, p)
	s.conns = append(s.conns, c)
	s.readers.Add(1)
	go func() {
		defer s.readers.Done()
		p.read(c)
		c.Close()
	}()
}

// peer asks the kernel who is at the other end (SO_PEERCRED, unix(7)).
func peer(c *net.UnixConn) (cred unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return cred, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		got, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if inner = err; err == nil {
			cred = *got
		}
	})
	if err == nil {
		err = inner
	}
	return cred, err
}

// processName is the kernel's short name of a process, or "?".
func processName(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}

// Times settle waits. A process that has ended has all it wrote in its
// socket's buffer, which is read at once; one that lives is asked to stop.
const (
	acceptWait = 50 * time.Millisecond
	drainWait  = 700 * time.Millisecond
)

// settle ends the recording: it takes connections still waiting, asks the
// profilers to stop by closing our side, reads what they sampled until now, and
// closes.
// It may be called again.
func (s *server) settle() {
	now := time.Now().UnixNano()
	s.mu.Lock()
	again := s.settling
	s.settling = true
	s.mu.Unlock()
	if !again {
		s.listener.SetDeadline(time.Now().Add(acceptWait))
	}
	<-s.accepting
	s.mu.Lock()
	conns := s.conns
	s.mu.Unlock()
	for _, p := range s.all() {
		if !again { // a profile may be under way by now, and holds them
			p.stopAt(now)
		}
	}
	for _, c := range conns {
		c.CloseWrite()
		c.SetReadDeadline(time.Now().Add(drainWait))
	}
	s.readers.Wait()
	s.close()
}

// close takes the socket away: a process that starts later finds none and runs
// on unrecorded, where it would wait for an answer otherwise.
func (s *server) close() {
	s.listener.Close()
	os.RemoveAll(s.dir)
}

// all returns the processes in the order they connected.
func (s *server) all() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*process(nil), s.processes...)
}

// count adds up what there is to show.
func (s *server) count() (p Progress) {
	all := s.all()
	p.Processes = len(all)
	for _, q := range all {
		q.mu.RLock()
		p.Samples += q.samples
		p.Complete += q.complete
		p.Threads += len(q.seen)
		q.mu.RUnlock()
	}
	return p
}

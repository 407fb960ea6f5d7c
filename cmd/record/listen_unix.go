//go:build unix

package record

import (
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what sockaddr_un holds, less the terminating zero (unix(7)).
const maxSocketPath = 107

// socket is a unix socket in a private directory.
type socket struct {
	*net.UnixListener
	path string
	user int // whose processes may connect beside our own, 0 = nobody's
}

// newListener makes a private directory with a socket in it.
func newListener(dir string) (*socket, *private, error) {
	p, err := newPrivate(dir)
	if err != nil {
		return nil, nil, err
	}
	path := p.path(socketName)
	if len(path) > maxSocketPath {
		p.close()
		if dir == "/tmp" {
			return nil, nil, fmt.Errorf("socket path %s is longer than %d bytes", path, maxSocketPath)
		}
		return newListener("/tmp")
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		p.close()
		return nil, nil, err
	}
	return &socket{UnixListener: l, path: path}, p, nil
}

func (s *socket) where() string { return s.path }
func (s *socket) close()        { s.Close() }

func (s *socket) accept(refuse func(string)) (stream, int, error) {
	for {
		c, err := s.AcceptUnix()
		if err != nil {
			return nil, 0, err
		}
		cred, err := peer(c)
		if err == nil && s.admits(&cred) {
			return c, int(cred.Pid), nil
		}
		refuse(fmt.Sprintf("a connection of another user was refused (%+v, %v)", cred, err))
		c.Close()
	}
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

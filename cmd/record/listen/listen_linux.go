package listen

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what sockaddr_un holds, less the terminating zero (unix(7)).
const maxSocketPath = 107

// Listener is a unix socket in a private directory, to which profilers connect.
type Listener struct {
	*net.UnixListener
	path string
	user int // whose processes may connect besides ours and root's; 0: none
}

// New makes a private directory in dir with a socket in it. It uses /tmp if the socket's path is too
// long.
func New(dir string) (*Listener, *Folder, error) {
	p, err := NewFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	path := p.Named(socketName)
	if len(path) > maxSocketPath {
		p.Close()
		if dir == "/tmp" {
			return nil, nil, fmt.Errorf("socket path %s is longer than %d bytes", path, maxSocketPath)
		}
		return New("/tmp")
	}
	l, err := (&net.ListenConfig{Control: onlyOwner}).Listen(context.Background(), "unix", p.Path(socketName))
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return &Listener{UnixListener: l.(*net.UnixListener), path: path}, p, nil
}

// onlyOwner gives a socket the mode of the file that bind will make.
func onlyOwner(_, _ string, c syscall.RawConn) (err error) {
	if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
		return e
	}
	return err
}

// Where returns the value of SEEDWALK_SOCKET.
func (s *Listener) Where() string { return s.path }

// Dial connects to the listener itself, behind the connections that wait already.
func (s *Listener) Dial() (net.Conn, error) { return net.Dial("unix", s.Addr().String()) }

// Next waits for a connection of our user, root, or the admitted user. It closes others, and calls
// refuse with the reason.
func (s *Listener) Next(refuse func(string)) (Stream, int, error) {
	for {
		c, err := s.AcceptUnix()
		if err != nil {
			return nil, 0, err
		}
		cred, err := Peer(c)
		if err == nil && s.admits(&cred) {
			return c, int(cred.Pid), nil
		}
		refuse(fmt.Sprintf("a connection of another user was refused (%+v, %v)", cred, err))
		c.Close()
	}
}

// Peer returns the process and the user at the other end (SO_PEERCRED, unix(7)).
func Peer(c *net.UnixConn) (cred unix.Ucred, err error) {
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

// ProcessName returns the kernel's short name of a process, or "?".
func ProcessName(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}

// Admit lets the processes of one other user connect, and load the probe beside the
// socket. The folder stays ours: its owner could put links into it, and so make us write
// or remove files in other places.
func (s *Listener) Admit(user int, p *Folder) error {
	s.user = user
	if err := os.Lchown(p.Path(socketName), user, -1); err != nil {
		return err
	}
	return os.Chmod(p.Path(""), 0o711)
}

// admits reports whether a process with these credentials may connect.
func (s *Listener) admits(cred *unix.Ucred) bool {
	uid := int(cred.Uid)
	return uid == os.Geteuid() || uid == 0 || s.user != 0 && uid == s.user
}

// lockFile makes a file and locks it. The lock ends with the process, however it ends;
// the command does not inherit it (O_CLOEXEC, as with every file of Go's).
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	_, err = f.WriteString("locked by the seedwalk that records here\n")
	return f, err
}

// dead reports whether the lock is free. An empty file is not free: its maker has not locked
// it yet.
func dead(lock string) bool {
	f, err := os.OpenFile(lock, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Size() > 0 && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// held is a directory of our user that is kept open (O_PATH, open(2)).
type held struct{ fd int }

// hold opens a directory. It refuses a link, and a directory of another user.
func hold(dir string) (held, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return held{}, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && int(st.Uid) != os.Geteuid() {
		err = unix.EPERM
	}
	if err != nil {
		unix.Close(fd)
		return held{}, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	return held{fd}, nil
}

func (h held) path(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", h.fd), name)
}

func (h held) Close() { unix.Close(h.fd) }

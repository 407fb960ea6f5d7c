package listen

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

// Listener is a TCP port of this machine, to which profilers connect. Any user of the machine could
// connect, so a profiler first sends the secret from the command's environment and its process id:
// 26 letters and four bytes, little-endian.
type Listener struct {
	*net.TCPListener
	secret string
}

// New makes a private directory and listens.
func New(dir string) (*Listener, *Folder, error) {
	p, err := NewFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return &Listener{l, rand.Text()}, p, nil
}

// Where returns the value of SEEDWALK_SOCKET.
func (p *Listener) Where() string { return "tcp:" + p.Addr().String() + ":" + p.secret }

// Admit does nothing: any process that knows the secret may connect.
func (p *Listener) Admit(int, *Folder) error { return nil }

// Dial connects to the listener itself, behind the connections that wait already.
func (p *Listener) Dial() (net.Conn, error) {
	c, err := net.Dial("tcp4", p.Addr().String())
	if err == nil {
		c.Write(binary.LittleEndian.AppendUint32([]byte(p.secret), uint32(os.Getpid())))
	}
	return c, err
}

// secretWait is how long a connection may take to send the secret. Other connections
// wait meanwhile.
const secretWait = 2 * time.Second

// Next waits for a connection that sends the secret. It closes others, and calls refuse.
func (p *Listener) Next(refuse func(string)) (Stream, int, error) {
	for {
		c, err := p.AcceptTCP()
		if err != nil {
			return nil, 0, err
		}
		b := make([]byte, len(p.secret)+4)
		c.SetReadDeadline(time.Now().Add(secretWait))
		if _, err = io.ReadFull(c, b); err == nil &&
			subtle.ConstantTimeCompare(b[:len(p.secret)], []byte(p.secret)) == 1 {
			c.SetReadDeadline(time.Time{})
			return c, int(binary.LittleEndian.Uint32(b[len(p.secret):])), nil
		}
		refuse("a connection without the secret was refused")
		c.Close()
	}
}

// ProcessName returns the name of a process's file, or "?".
func ProcessName(pid int) string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return "?"
	}
	defer windows.CloseHandle(h)
	var buf [windows.MAX_LONG_PATH]uint16
	n := uint32(len(buf))
	if windows.QueryFullProcessImageName(h, 0, &buf[0], &n) != nil {
		return "?"
	}
	return filepath.Base(windows.UTF16ToString(buf[:n]))
}

// lockFile makes a file that cannot be removed while we have it open: Go opens files
// without FILE_SHARE_DELETE.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// dead reports whether no process has the lock open. It removes the lock in that case.
func dead(lock string) bool { return os.Remove(lock) == nil }

// held is a directory below the user's own one for temporary files. No other user can replace it.
type held string

func hold(dir string) (held, error) { return held(dir), nil }

func (h held) path(name string) string { return filepath.Join(string(h), name) }

func (h held) Close() {}

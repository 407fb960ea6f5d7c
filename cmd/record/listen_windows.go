package record

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

// port is a TCP port of this machine. Any of its users could connect, so that a
// profiler first says the secret that stands in the command's environment, and
// its process id: 26 letters and four bytes, little-endian.
type port struct {
	*net.TCPListener
	secret string
}

// newListener makes a private directory and listens.
func newListener(dir string) (*port, *private, error) {
	p, err := newPrivate(dir)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		p.close()
		return nil, nil, err
	}
	return &port{l, rand.Text()}, p, nil
}

func (p *port) where() string { return "tcp:" + p.Addr().String() + ":" + p.secret }
func (p *port) close()        { p.Close() }

// admit has nothing to do: who knows the secret may connect.
func (p *port) admit(int, *private) error { return nil }

// secretWait is how long a connection may take to say the secret; the next one
// waits for it.
const secretWait = 2 * time.Second

func (p *port) accept(refuse func(string)) (stream, int, error) {
	for {
		c, err := p.AcceptTCP()
		if err != nil {
			return nil, 0, err
		}
		b := make([]byte, len(p.secret)+4)
		c.SetReadDeadline(time.Now().Add(secretWait))
		if _, err = io.ReadFull(c, b); err == nil && subtle.ConstantTimeCompare(b[:len(p.secret)], []byte(p.secret)) == 1 {
			c.SetReadDeadline(time.Time{})
			return c, int(binary.LittleEndian.Uint32(b[len(p.secret):])), nil
		}
		refuse("a connection without the secret was refused")
		c.Close()
	}
}

// processName is the name of a process's file, or "?".
func processName(pid int) string {
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

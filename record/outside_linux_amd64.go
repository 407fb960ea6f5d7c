package record

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/outside"
)

// hasProbe says that there is a probe for this system.
const hasProbe = true

// handOver is how long a probe that has connected may take to send its file.
const handOver = 2 * time.Second

// engineStream is a connection whose other end is an engine of this process.
type engineStream struct {
	net.Conn
	engine *outside.Engine
}

func (s engineStream) CloseWrite() error {
	s.engine.Stop()
	return nil
}

// sampled starts an engine for the process that a probe has connected from, and
// gives the stream of its samples.
func (s *server) sampled(c stream, pid int) (stream, error) {
	defer c.Close()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	fd, err := receiveFile(u)
	if err != nil {
		return nil, fmt.Errorf("the probe in process %d sent no file: %w", pid, err)
	}
	defer unix.Close(fd)
	here, there := net.Pipe()
	e, err := outside.New(pid, fd, s.outside, there)
	if err != nil {
		return nil, err
	}
	go func() {
		e.Run()
		there.Close()
	}()
	return engineStream{here, e}, nil
}

// receiveFile takes the descriptor that comes with the greeting.
func receiveFile(c *net.UnixConn) (int, error) {
	c.SetReadDeadline(time.Now().Add(handOver))
	var greeting [8]byte
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(greeting[:], control)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.New("no descriptor")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.New("not one descriptor")
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

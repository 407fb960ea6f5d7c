package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/target"
)

// handOver is the time that a connected probe has for its first message.
const handOver = 10 * time.Second

// readStream is a connection whose first bytes have been read.
type readStream struct {
	listen.Stream
	first io.Reader
}

func (s readStream) Read(p []byte) (int, error) { return s.first.Read(p) }

// sampled returns the stream of the samples of the process that has connected. A probe first asks whether its
// runtime can be sampled from outside; then it sends its file, and an engine is started. A connection without
// the probe's greeting is from the library that was loaded instead, which sends samples itself.
func (s *server) sampled(c listen.Stream, pid int) (listen.Stream, error) {
	u, ok := c.(interface {
		ReadMsgUnix(b, oob []byte) (n, oobn, flags int, addr *net.UnixAddr, err error)
		SetReadDeadline(time.Time) error
	})
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	u.SetReadDeadline(time.Now().Add(handOver))
	first, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	n, oob, _, _, err := u.ReadMsgUnix(first, control)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("process %d connected and sent nothing: %w", pid, err)
	}
	u.SetReadDeadline(time.Time{})
	fd, err := probe.Greeted(first[:n], control[:oob])
	if err == probe.ErrNoGreeting {
		return readStream{c, io.MultiReader(bytes.NewReader(first[:n]), c)}, nil
	}
	defer c.Close()
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	if fd < 0 {
		s.mu.Lock()
		s.asked = pid
		s.mu.Unlock()
		s.answer(c, pid)
		return nil, errAnswered
	}
	defer unix.Close(fd)
	notify(s.greeted)
	return s.engine(fd, pid)
}

// answer sends a probe the path of the library to load instead, if its runtime cannot be sampled from
// outside.
func (s *server) answer(c listen.Stream, pid int) {
	why := target.Refuses(pid)
	if why == "" {
		return
	}
	if onMusl(pid) {
		s.note(fmt.Sprintf("process %d (%s) cannot be sampled: %s, and musl cannot load the library that --mode snapshot needs", pid, listen.ProcessName(pid), why))
		return
	}
	if _, err := os.Stat(s.instead); err != nil {
		s.note(fmt.Sprintf("process %d (%s) cannot be sampled: %s, and %s, which --mode snapshot needs, is missing; %s", pid, listen.ProcessName(pid), why, options.LibraryName, options.LibraryRemedy))
		return
	}
	if s.outside.Events != 0 {
		s.note(fmt.Sprintf("process %d (%s): its waits, locks, allocations, and exceptions are not recorded: %s", pid, listen.ProcessName(pid), why))
	}
	note := fmt.Sprintf("process %d (%s): --mode snapshot, because %s: the runtime is suspended for each sample%s", pid,
		listen.ProcessName(pid), why, options.Bias)
	s.note(note)
	s.mu.Lock()
	s.fellBack, s.fellNote = why, note
	s.mu.Unlock()
	io.WriteString(c, s.instead)
}

// onMusl reports whether a process uses musl as its C library: musl has no room for the thread-local storage
// that Go's libraries need.
func onMusl(pid int) bool {
	maps, _ := live.Maps(pid)
	return slices.ContainsFunc(maps, func(m live.Mapping) bool {
		name := filepath.Base(m.Path)
		return name == "libc.so" || strings.HasPrefix(name, "ld-musl-")
	})
}

func (s *server) engine(fd, pid int) (listen.Stream, error) {
	here, there := net.Pipe()
	e, err := outside.New(pid, fd, s.outside, there)
	if err != nil {
		return nil, err
	}
	return running(e, here, there), nil
}

package diagnostics

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// DefaultTimeout is the longest wait for an answer.
const DefaultTimeout = 15 * time.Second

// Client sends commands to one process.
type Client struct {
	PID     int
	Timeout time.Duration // 0 = DefaultTimeout
	dial    func() (io.ReadWriteCloser, error)
}

// NewClient returns a client that opens its connections with dial, one for each command.
func NewClient(pid int, dial func() (io.ReadWriteCloser, error)) *Client {
	return &Client{PID: pid, dial: dial}
}

// deadliner is a connection with a deadline.
type deadliner interface{ SetDeadline(time.Time) error }

// send sends one command and returns the connection, for data that may follow the answer.
func (c *Client) send(set, id uint8, p payload) (io.ReadWriteCloser, []byte, error) {
	m, err := message(set, id, p)
	if err != nil {
		return nil, nil, err
	}
	conn, err := c.dial()
	if err != nil {
		return nil, nil, err
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if d, ok := conn.(deadliner); ok {
		d.SetDeadline(time.Now().Add(timeout))
	}
	body, err := exchange(conn, m)
	if err != nil {
		conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) && IsStopped(c.PID) {
			err = &FindError{c.PID, Stopped, nil}
		}
		return nil, nil, err
	}
	if d, ok := conn.(deadliner); ok {
		d.SetDeadline(time.Time{})
	}
	return conn, body, nil
}

func exchange(conn io.ReadWriter, m []byte) ([]byte, error) {
	if _, err := conn.Write(m); err != nil {
		return nil, &ReplyError{"the runtime hung up", err}
	}
	return readAnswer(conn)
}

// call sends a command without data after its answer.
func (c *Client) call(set, id uint8, p payload) ([]byte, error) {
	conn, body, err := c.send(set, id, p)
	if err != nil {
		return nil, err
	}
	conn.Close()
	return body, nil
}

// Commands about the process.
const (
	processInfo   = 0
	processResume = 1
	processInfo2  = 4
	processInfo3  = 8
)

// Info is a process's description of itself.
type Info struct {
	PID          uint64
	Cookie       [16]byte // of this runtime
	CommandLine  string
	OS, Arch     string
	Assembly     string // of Main; "" if the runtime does not report it
	Version      string // of the runtime; "" if not reported
	PortableRID  string // "" if not reported
	commandOfIPC uint8
}

// Info requests the process's description.
func (c *Client) Info() (*Info, error) {
	var err error
	for _, id := range []uint8{processInfo3, processInfo2, processInfo} {
		var body []byte
		if body, err = c.call(setProcess, id, nil); err == nil {
			return parseInfo(id, body)
		}
		if !errors.Is(err, UnknownCommand) {
			return nil, err
		}
	}
	return nil, err
}

func parseInfo(id uint8, body []byte) (*Info, error) {
	c := cursor{buf.Reader{Data: body}}
	i := &Info{commandOfIPC: id}
	if id == processInfo3 {
		c.U32() // version of this format
	}
	i.PID = c.U64()
	copy(i.Cookie[:], c.Bytes(16))
	i.CommandLine, i.OS, i.Arch = c.text(), c.text(), c.text()
	if id != processInfo {
		i.Assembly, i.Version = c.text(), c.text()
	}
	if id == processInfo3 {
		i.PortableRID = c.text()
	}
	if !c.OK() {
		return nil, &ReplyError{What: "the answer about the process is too short"}
	}
	return i, nil
}

// Resume continues a process that waits at its start.
func (c *Client) Resume() error {
	_, err := c.call(setProcess, processResume, nil)
	return err
}

const profilerAttach = 1

// Profiler is a profiler library to load into a process.
type Profiler struct {
	CLSID   [16]byte // as in memory on Windows: the first three fields little endian
	Path    string   // absolute, as the process sees it
	Data    []byte   // for InitializeForAttach
	Timeout time.Duration
}

// Attach makes the runtime load a profiler. It returns after the profiler's InitializeForAttach.
func (c *Client) Attach(a Profiler) error {
	if a.Timeout <= 0 {
		a.Timeout = 10 * time.Second
	}
	waiting := *c
	waiting.Timeout = a.Timeout + DefaultTimeout
	body, err := waiting.call(setProfiler, profilerAttach, encodeAttach(&a))
	if err != nil {
		return err
	}
	if in := (cursor{buf.Reader{Data: body}}); len(body) >= 4 {
		if h := HResult(in.U32()); int32(h) < 0 {
			return h
		}
	}
	return nil
}

func encodeAttach(a *Profiler) payload {
	var p payload
	p.u32(uint32(a.Timeout / time.Millisecond))
	p = append(p, a.CLSID[:]...)
	p.text(a.Path)
	p.u32(uint32(len(a.Data)))
	return append(p, a.Data...)
}

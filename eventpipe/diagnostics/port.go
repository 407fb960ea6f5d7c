package diagnostics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// advertiseMagic is the start of a runtime's advertisement at a reverse port. A cookie of 16 bytes, the
// process's id in 8, and 2 zero bytes follow.
var advertiseMagic = []byte("ADVR_V1\x00")

const advertiseSize = 34

// PortVariable is the environment variable that lists ports for a runtime.
const PortVariable = "DOTNET_DiagnosticPorts"

// Port is a reverse port: runtimes started with its Variable connect to it and wait until they are resumed.
type Port struct {
	listener net.Listener
	path     string
	mu       sync.Mutex
	known    map[[16]byte]chan net.Conn // connections of a runtime, for commands
	fresh    chan *Client
	done     chan struct{}
	once     sync.Once
}

// ErrNoPort is Listen's error on Windows, where runtimes expect a named pipe.
var ErrNoPort = errors.New("reverse ports are not served on Windows: have the process wait at its own port (DOTNET_DefaultDiagnosticPortSuspend=1) and connect to that")

// Listen opens a port at a new path of the file system.
func Listen(path string) (*Port, error) {
	if runtime.GOOS == "windows" {
		return nil, ErrNoPort
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	p := &Port{listener: l, path: path, known: map[[16]byte]chan net.Conn{},
		fresh: make(chan *Client, 16), done: make(chan struct{})}
	go p.serve()
	return p, nil
}

// Variable returns the environment variable, NAME=VALUE, that makes a process connect here and wait before it
// runs anything.
func (p *Port) Variable() string { return PortVariable + "=" + p.path + ",suspend" }

// Runtimes delivers every runtime once, when it first connects. Each waits to be resumed.
func (p *Port) Runtimes() <-chan *Client { return p.fresh }

// Close closes the port. Existing connections stay.
func (p *Port) Close() error {
	err := p.listener.Close()
	p.once.Do(func() { close(p.done) })
	return err
}

func (p *Port) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.greet(conn)
	}
}

// greet reads a runtime's advertisement and keeps the connection for the next command to it.
func (p *Port) greet(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(DefaultTimeout))
	var b [advertiseSize]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil || !bytes.HasPrefix(b[:], advertiseMagic) {
		conn.Close()
		return
	}
	conn.SetDeadline(time.Time{})
	var cookie [16]byte
	copy(cookie[:], b[8:])
	conns, isNew := p.runtime(cookie)
	select { // a runtime has one open connection at a time; a new one replaces it
	case old := <-conns:
		old.Close()
	default:
	}
	select {
	case conns <- conn:
	case <-p.done:
		conn.Close()
		return
	}
	if isNew {
		client := NewClient(int(binary.LittleEndian.Uint64(b[24:])),
			func() (io.ReadWriteCloser, error) { return p.take(conns) })
		select {
		case p.fresh <- client:
		case <-p.done:
		}
	}
}

func (p *Port) runtime(cookie [16]byte) (conns chan net.Conn, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns, ok := p.known[cookie]
	if !ok {
		conns = make(chan net.Conn, 1)
		p.known[cookie] = conns
	}
	return conns, !ok
}

// take waits for a runtime's next connection.
func (p *Port) take(conns chan net.Conn) (io.ReadWriteCloser, error) {
	select {
	case c := <-conns:
		return c, nil
	case <-p.done:
		return nil, &ReplyError{What: "the port is closed"}
	case <-time.After(DefaultTimeout):
		return nil, &ReplyError{What: "the runtime did not connect again"}
	}
}

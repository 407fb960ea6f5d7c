package diagnostics

import (
	"errors"
	"io"
	"sync"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// EventPipe commands, with their numbers in the protocol: CollectTracing2 is 3.
const (
	stopTracing     = 1
	collectTracing2 = 3
	collectTracing4 = 5
	collectTracing5 = 6
)

// formatNettrace is the only serialization format that may be requested: any other crashes a .NET 9 process.
const formatNettrace = 1

// Provider is a source of events.
type Provider struct {
	Name      string
	Keywords  uint64
	Level     uint32
	Arguments string
	Events    []uint32 // only these ids, if the runtime can filter (.NET 10); nil = all
}

// Config selects the data of a session.
type Config struct {
	BufferMB  uint32 // 0 = 256
	Rundown   uint64 // keywords for the list of methods at the end; 0 = none
	NoStacks  bool
	Providers []Provider
}

// Session is a running EventPipe session. Read returns its .nettrace bytes.
type Session struct {
	ID      uint64
	Version int // of the command that started it: 5, 4, 2
	client  *Client
	conn    io.ReadWriteCloser
	once    sync.Once
	stopped error
}

// collectors are the forms of the command, newest first.
var collectors = []struct {
	version int
	id      uint8
	encode  func(*Config) payload
}{{5, collectTracing5, encode5}, {4, collectTracing4, encode4}, {2, collectTracing2, encode2}}

// Collect starts a session, by the newest form of the command that the runtime knows. Only version 5 can
// select events by id, and version 2 cannot leave out stacks.
func (c *Client) Collect(cfg Config) (*Session, error) {
	var err error
	for _, f := range collectors {
		conn, body, fail := c.send(setEventPipe, f.id, f.encode(&cfg))
		if err = fail; err == nil {
			return newSession(c, conn, body, f.version)
		}
		if !errors.Is(err, UnknownCommand) {
			return nil, err
		}
	}
	return nil, err
}

func newSession(c *Client, conn io.ReadWriteCloser, body []byte, version int) (*Session, error) {
	in := cursor{buf.Reader{Data: body}}
	id := in.U64()
	if !in.OK() {
		conn.Close()
		return nil, &ReplyError{What: "the answer has no session in it"}
	}
	return &Session{ID: id, Version: version, client: c, conn: conn}, nil
}

func (cfg *Config) buffer() uint32 {
	if cfg.BufferMB == 0 {
		return 256
	}
	return cfg.BufferMB
}

func flag(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// encode5: type of session, buffer, format, rundown, stacks, providers with
// filters of events.
func encode5(cfg *Config) (p payload) {
	p.u32(0) // streamed on this connection
	p.config(cfg, true)
	return p
}

// encode4: buffer, format, rundown, stacks, providers.
func encode4(cfg *Config) (p payload) {
	p.config(cfg, false)
	return p
}

func (p *payload) config(cfg *Config, filter bool) {
	p.u32(cfg.buffer())
	p.u32(formatNettrace)
	p.u64(cfg.Rundown)
	p.u8(flag(!cfg.NoStacks))
	p.providers(cfg.Providers, filter)
}

// encode2: buffer, format, whether there is a rundown, providers.
func encode2(cfg *Config) (p payload) {
	p.u32(cfg.buffer())
	p.u32(formatNettrace)
	p.u8(flag(cfg.Rundown != 0))
	p.providers(cfg.Providers, false)
	return p
}

func (p *payload) providers(list []Provider, filter bool) {
	p.u32(uint32(len(list)))
	for i := range list {
		v := &list[i]
		p.u64(v.Keywords)
		p.u32(v.Level)
		p.text(v.Name)
		p.text(v.Arguments)
		if filter {
			p.filter(v.Events)
		}
	}
}

// filter encodes whether to deliver only these ids, or all others.
func (p *payload) filter(events []uint32) {
	p.u8(flag(len(events) > 0))
	p.u32(uint32(len(events)))
	for _, id := range events {
		p.u32(id)
	}
}

// Read reads the trace.
func (s *Session) Read(p []byte) (int, error) { return s.conn.Read(p) }

// Stop ends the session, on a separate connection. Meanwhile the trace must be read up to its end; it then
// has its end mark.
func (s *Session) Stop() error {
	s.once.Do(func() {
		var p payload
		p.u64(s.ID)
		_, s.stopped = s.client.call(setEventPipe, stopTracing, p)
	})
	return s.stopped
}

// Close closes the connection. If the session was not stopped, the runtime ends it when it next writes.
func (s *Session) Close() error { return s.conn.Close() }

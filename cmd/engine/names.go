//go:build linux || (windows && amd64)

package engine

import (
	"errors"
	"io"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	// maxNamed bounds the addresses of native frames that are named.
	maxNamed = 1 << 18
	// batch is the size at which buffered messages are written to the client, in bytes. The kernel charges
	// each write some hundred bytes of overhead to the socket's buffer.
	batch = 1 << 15
)

// namer names native frames on the way to the client, which reads no symbols. It gives methods even
// ids, and native functions odd ones.
type namer struct {
	pid      int // the program's process
	resolver *symbol.Resolver
	modules  map[uint32]*wire.Module
	named    map[uint64]uint32 // address -> id, 0 = it has no name
	ids      map[string]uint32
	out      *wire.Writer
}

func newNamer(pid int) *namer {
	return &namer{pid, symbol.NewResolver(), map[uint32]*wire.Module{}, map[uint64]uint32{},
		map[string]uint32{}, wire.NewWriter(nil)}
}

// pass copies the stream until it ends. The end of the sender is no error.
func (n *namer) pass(from io.Reader, to io.Writer) error {
	in := wire.NewReader(from)
	for {
		m, err := in.Next()
		if err != nil {
			to.Write(n.out.Bytes())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n.rename(m)
		n.out.Message(m)
		if in.Buffered() > 0 && n.out.Len() < batch {
			continue
		}
		if _, err := to.Write(n.out.Bytes()); err != nil {
			return err
		}
		n.out.Reset()
	}
}

// rename gives a message's methods their ids, and writes the names of new functions.
func (n *namer) rename(m wire.Message) {
	switch m := m.(type) {
	case *wire.Module:
		n.modules[m.ID] = m
		n.keep(m)
		clear(n.named) // something else may lie there now
	case *wire.Method:
		m.ID *= 2
	case *wire.Sample:
		n.frames(m.Frames)
	case *wire.Event:
		n.frames(m.Frames)
	}
}

// keep stores a native image for the names of its functions. The names stay right even if the image's file is
// replaced later. The file is not read again, because the engine has mapped it.
func (n *namer) keep(m *wire.Module) {
	if f := live.OpenImage(n.pid, m.Path, m.BuildID); f != nil {
		n.resolver.Keep(m.Path, m.BuildID, f)
	}
}

func (n *namer) frames(frames []wire.Frame) {
	for i := range frames {
		f := &frames[i]
		if f.Method *= 2; f.Method == 0 && f.Kind == unwind.KindNative {
			f.Method = n.name(f)
		}
	}
}

// name returns the id of a native frame's function, 0 if it has no name.
func (n *namer) name(f *wire.Frame) uint32 {
	addr := f.Addr()
	if id, ok := n.named[addr]; ok || len(n.named) >= maxNamed {
		return id
	}
	id, m := uint32(0), n.modules[f.Module]
	if m != nil {
		if name, ok := n.resolver.Name(m.Path, m.BuildID, addr-m.Bias); ok && name != "" {
			id = n.define(name)
		}
	}
	n.named[addr] = id
	return id
}

// define writes a new function.
func (n *namer) define(name string) uint32 {
	id, ok := n.ids[name]
	if !ok {
		id = uint32(2*len(n.ids) + 1)
		n.ids[name] = id
		n.out.Method(&wire.Method{ID: id, Name: name})
	}
	return id
}

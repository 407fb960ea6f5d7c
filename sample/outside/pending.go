package outside

import (
	"bytes"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// stackSample is a copied stack and what it stands for.
type stackSample struct {
	capture
	time  int64 // Unix nanoseconds
	cpu   uint64
	wall  int64
	event *probe.Record // the runtime's event, nil = none
}

// pending holds copies of samples that can be walked better later, in the order in which they
// came: until the runtime's tables have been found and proven. Its size is bounded.
type pending struct {
	samples []stackSample
	bytes   int
}

// Bounds of what is held.
const (
	maxPending      = 1 << 14
	maxPendingBytes = 16 << 20
)

// add holds a copy of s. It returns false if there is no room.
func (p *pending) add(s *stackSample) bool {
	size := len(s.stack.Data) + len(s.extra)
	for i := range s.more {
		size += len(s.more[i].Data)
	}
	if s.event != nil {
		size += len(s.event.Payload)
	}
	if len(p.samples) >= maxPending || p.bytes+size > maxPendingBytes {
		return false
	}
	p.samples, p.bytes = append(p.samples, s.clone()), p.bytes+size
	return true
}

// take returns what is held and holds it no longer.
func (p *pending) take() []stackSample {
	out := p.samples
	*p = pending{}
	return out
}

// clone copies what the source's owner will overwrite.
func (s *stackSample) clone() stackSample {
	out := *s
	out.stack.Data, out.extra, out.more = bytes.Clone(s.stack.Data), bytes.Clone(s.extra), nil
	for _, r := range s.more {
		out.more = append(out.more, memory.Run{Addr: r.Addr, Data: bytes.Clone(r.Data)})
	}
	if s.event != nil {
		event := *s.event
		event.Regs, event.Stack, event.Extra, event.Below = nil, nil, nil, nil // the capture has them
		event.Payload = bytes.Clone(event.Payload)
		out.event = &event
	}
	return out
}

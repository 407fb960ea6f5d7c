package sampler

import (
	"bytes"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// Sample is a copied stack and the time that it represents.
type Sample struct {
	walk.Capture
	Time  int64 // Unix nanoseconds
	Cpu   uint64
	Wall  int64
	Event *probe.Record // the runtime's event, nil = none
}

// pending holds copies of samples, in order, that will get better stacks once the runtime's tables are found
// and verified. Its size is bounded.
type pending struct {
	Samples []Sample
	bytes   int
}

// Bounds of held samples.
const (
	maxPending      = 1 << 14
	maxPendingBytes = 16 << 20
)

// Add holds a copy of s. It returns false if it is full.
func (p *pending) Add(s *Sample) bool {
	size := len(s.Stack.Data) + len(s.Extra) + len(s.Objects)
	for i := range s.More {
		size += len(s.More[i].Data)
	}
	if s.Event != nil {
		size += len(s.Event.Payload)
	}
	if len(p.Samples) >= maxPending || p.bytes+size > maxPendingBytes {
		return false
	}
	p.Samples, p.bytes = append(p.Samples, s.clone()), p.bytes+size
	return true
}

// Take removes and returns the held samples.
func (p *pending) Take() []Sample {
	out := p.Samples
	*p = pending{}
	return out
}

// clone copies everything that the sample's source will overwrite.
func (s *Sample) clone() Sample {
	out := *s
	out.Stack.Data, out.Extra, out.Objects, out.More = bytes.Clone(s.Stack.Data),
		bytes.Clone(s.Extra), bytes.Clone(s.Objects), nil
	for _, r := range s.More {
		out.More = append(out.More, memory.Run{Addr: r.Addr, Data: bytes.Clone(r.Data)})
	}
	if s.Event != nil {
		event := *s.Event
		event.Regs, event.Stack, event.Extra, event.Below = nil, nil, nil, nil // the capture has copies
		event.Payload = bytes.Clone(event.Payload)
		out.Event = &event
	}
	return out
}

// Package stream writes a sampler's results as messages of package wire, and optionally into a file of raw
// samples. The engine inside a target (agent) and the one outside (outside) get stacks and names differently
// but write them in the same way.
//
// Sources: packages wire and stack/raw, which define seedwalk's own formats.
//
// Glossary. A module or a method is *defined* once, before the first sample that refers to its number.
//
// Strategy. One writer with a reused buffer; its owner decides when to send. It allocates, so nothing here
// may be called while a thread is suspended.
//
// Known gaps: if a module's number came to mean another file, it would not be defined again; module tables
// never reuse a number.
package stream

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Methods assigns numbers to methods.
type Methods interface {
	// Method returns the number of a managed frame's method, and the kind of the frame according to the
	// method's name.
	Method(f *merge.Frame) (id uint32, kind unwind.Kind)
	// Inlined returns the methods that are inlined in a managed frame, the innermost one first. callee is the
	// managed frame that f calls, or nil if f calls native code or is the leaf.
	Inlined(f, callee *merge.Frame) []Inlined
}

// Inlined is a method whose code is part of a frame.
type Inlined struct {
	Method uint32
	Addr   uint64 // of its position in the source, see InlinedAddr
}

// InlinedAddr returns an address outside any code, for the source position of a method inlined at addr. The
// innermost method has depth 1.
func InlinedAddr(addr uint64, depth int) uint64 { return addr&(1<<56-1) | uint64(min(depth, 127))<<56 }

// Stream is the messages of one process.
type Stream struct {
	Out           *wire.Writer
	Raw           *raw.Writer  // raw samples; its methods accept nil
	Frames        []wire.Frame // from the last Encode
	wire.Activity              // of the sample that is sent next
	methods       Methods
	table         *module.Table
	defined       map[uint32]bool
}

// New returns a stream with a buffer of the given initial size.
func New(room int, m Methods) Stream {
	return Stream{Out: wire.NewWriter(make([]byte, 0, room)), methods: m, defined: map[uint32]bool{}}
}

// Begin sends who is sampled and the names of the gaps.
func (s *Stream) Begin(h *wire.Hello) {
	s.Out.Hello(h)
	for g := 1; g < merge.GapCount; g++ {
		s.Out.GapName(uint8(g), merge.Gap(g).String())
	}
}

// OpenRaw creates the file of raw samples; "" for none. If the file cannot be created, a note is sent and
// sampling continues without it.
func (s *Stream) OpenRaw(path string) {
	if path == "" {
		return
	}
	w, err := raw.Create(path)
	if err != nil {
		s.Out.Note("cannot write raw samples: " + err.Error())
		return
	}
	s.Raw = w
}

// Modules sets the module table of the following frames, and defines new modules.
func (s *Stream) Modules(t *module.Table) {
	s.table = t
	for i := range t.Len() {
		m := t.At(i)
		if s.defined[m.ID] {
			continue
		}
		s.defined[m.ID] = true
		s.Out.Module(&wire.Module{ID: m.ID, Start: m.Start, End: m.End, Bias: m.Bias,
			Path: m.Path, BuildID: m.BuildID})
	}
	s.Raw.Table(t)
}

// Define sends a method's name.
func (s *Stream) Define(id uint32, f clr.FunctionID, name, module string) {
	s.Out.Method(&wire.Method{ID: id, FunctionID: uint64(f), Name: name, Module: module})
	s.Raw.Method(f, name)
}

// Encode converts merged frames into those of the stream. The first probe frames are the sampler's own.
func (s *Stream) Encode(frames []merge.Frame, probe int) []wire.Frame {
	s.Frames, s.Activity = s.Frames[:0], wire.Activity{}
	for i := range frames {
		f := &frames[i]
		w := wire.Frame{Kind: f.Kind, Trust: f.Trust, Gap: uint8(f.Gap), IP: f.IP}
		if f.Exact {
			w.Flags = wire.FrameExact
		}
		if i < probe {
			w.Flags |= wire.FrameProbe
		}
		if f.Module >= 0 {
			w.Module = s.table.At(int(f.Module)).ID
		}
		if f.Function != 0 {
			w.Method, w.Kind = s.methods.Method(f)
			var callee *merge.Frame
			if i > 0 && frames[i-1].Function != 0 {
				callee = &frames[i-1]
			}
			for _, in := range s.methods.Inlined(f, callee) {
				s.Frames = append(s.Frames,
					wire.Frame{Kind: w.Kind, Trust: w.Trust, Flags: w.Flags | wire.FrameExact,
						IP: in.Addr, Method: in.Method})
			}
		}
		s.Frames = append(s.Frames, w)
	}
	return s.Frames
}

// Flush sends the buffered messages.
func (s *Stream) Flush(send func([]byte) error) error {
	if s.Out.Len() == 0 {
		return nil
	}
	err := send(s.Out.Bytes())
	s.Out.Reset()
	return err
}

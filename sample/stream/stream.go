// Package stream writes what a sampler found as messages of package wire, and
// beside them into a file of raw samples if one is wanted. The engine that runs in
// a target (agent) and the one that looks at it from outside (outside) differ in
// how they come by stacks and names, not in what they tell of them.
//
// Sources: packages wire and stack/raw, whose formats are the project's own.
//
// Glossary. A module or a method is *told* once, before the first sample that
// names it by its number.
//
// Strategy. One writer, whose buffer is used again; the owner says when it goes
// out. Nothing here may be called while a thread is suspended: it allocates.
//
// Known gaps: a module's number that comes to stand for another file is not told
// again; tables never use a number twice.
package stream

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Methods gives methods their numbers in the stream.
type Methods interface {
	// Method is the number of a managed frame's method, and what kind of frame it
	// is now that its name is known.
	Method(f *merge.Frame) (id uint32, kind unwind.Kind)
	// Inlined returns the methods that are inlined in a managed frame, the innermost one first.
	Inlined(f *merge.Frame) []Inlined
}

// Inlined is a method whose code is part of a frame.
type Inlined struct {
	Method uint32
	Addr   uint64 // of its place in the source, see InlinedAddr
}

// InlinedAddr returns an address that no code has. It is that of the place of the method that is
// inlined at addr. The innermost one has depth 1.
func InlinedAddr(addr uint64, depth int) uint64 { return addr&(1<<56-1) | uint64(min(depth, 127))<<56 }

// Stream is the messages of one process.
type Stream struct {
	Out     *wire.Writer
	Raw     *raw.Writer  // nil: no such file, which its methods take
	Frames  []wire.Frame // of the last Encode
	methods Methods
	table   *module.Table
	told    map[uint32]bool
}

// New makes a stream with room for so many bytes before the buffer must grow.
func New(room int, m Methods) Stream {
	return Stream{Out: wire.NewWriter(make([]byte, 0, room)), methods: m, told: map[uint32]bool{}}
}

// Begin tells who is sampled and what gaps are called.
func (s *Stream) Begin(h *wire.Hello) {
	s.Out.Hello(h)
	for g := 1; g < merge.GapCount; g++ {
		s.Out.GapName(uint8(g), merge.Gap(g).String())
	}
}

// OpenRaw creates the file of raw samples, "" for none. That it cannot be written
// is told, and sampling goes on without.
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

// Modules makes t the table of the frames that follow, and tells of modules that
// are new.
func (s *Stream) Modules(t *module.Table) {
	s.table = t
	for i := range t.Len() {
		m := t.At(i)
		if s.told[m.ID] {
			continue
		}
		s.told[m.ID] = true
		s.Out.Module(&wire.Module{ID: m.ID, Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path, BuildID: m.BuildID})
	}
	s.Raw.Table(t)
}

// Define tells a method's name.
func (s *Stream) Define(id uint32, f clr.FunctionID, name, module string) {
	s.Out.Method(&wire.Method{ID: id, FunctionID: uint64(f), Name: name, Module: module})
	s.Raw.Method(f, name)
}

// Encode turns merged frames into those of the stream; the first probe of them
// are the sampler's own doing.
func (s *Stream) Encode(frames []merge.Frame, probe int) []wire.Frame {
	s.Frames = s.Frames[:0]
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
			for _, in := range s.methods.Inlined(f) {
				s.Frames = append(s.Frames, wire.Frame{Kind: w.Kind, Trust: w.Trust, Flags: w.Flags | wire.FrameExact, IP: in.Addr, Method: in.Method})
			}
		}
		s.Frames = append(s.Frames, w)
	}
	return s.Frames
}

// Flush sends what has been written.
func (s *Stream) Flush(send func([]byte) error) error {
	if s.Out.Len() == 0 {
		return nil
	}
	err := send(s.Out.Bytes())
	s.Out.Reset()
	return err
}

package outside

import (
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/internal/raw"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/wire"
)

type frame = wire.Frame

// stream turns walked stacks into the messages of package wire.
type stream struct {
	out     *wire.Writer
	to      io.Writer
	raw     *raw.Writer
	modules map[uint32]bool
	methods map[clr.FunctionID]method
	frames  []frame
	last    uint32
	unnamed uint64
}

// method is what the stream knows a method by.
type method struct {
	id   uint32
	stub bool
}

// maxMethods bounds the methods remembered; a program has some ten thousand.
const maxMethods = 1 << 20

func newStream(to io.Writer) *stream {
	return &stream{out: wire.NewWriter(make([]byte, 0, 1<<18)), to: to, modules: map[uint32]bool{}, methods: map[clr.FunctionID]method{}}
}

func (s *stream) flush() error {
	if s.out.Len() == 0 {
		return nil
	}
	_, err := s.to.Write(s.out.Bytes())
	s.out.Reset()
	return err
}

// announce tells of modules not told of before.
func (s *stream) announce(t *target) {
	for i := range t.table.Len() {
		m := t.table.At(i)
		if !s.modules[m.ID] {
			s.modules[m.ID] = true
			s.out.Module(&wire.Module{ID: m.ID, Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path, BuildID: m.BuildID})
		}
	}
	s.raw.Table(t.table)
}

// encode turns a walk's frames into the stream's, and gives each managed frame the
// identity by which its method was named.
func (s *stream) encode(t *target, frames []merge.Frame) []frame {
	s.frames = s.frames[:0]
	for i := range frames {
		f := &frames[i]
		w := frame{Kind: f.Kind, Trust: f.Trust, Gap: uint8(f.Gap), IP: f.IP}
		if f.Exact {
			w.Flags = wire.FrameExact
		}
		if f.Module >= 0 {
			w.Module = t.table.At(int(f.Module)).ID
		}
		if f.Function != 0 {
			m := s.method(t, f)
			w.Method = m.id
			if m.stub {
				w.Kind = unwind.KindStub
			}
		}
		s.frames = append(s.frames, w)
	}
	return s.frames
}

// method is the stream's method of a managed frame.
func (s *stream) method(t *target, f *merge.Frame) method {
	if m, ok := s.methods[f.Function]; ok {
		return m
	}
	if len(s.methods) >= maxMethods {
		clear(s.methods)
	}
	name, module, stub, same := t.name(f.IP)
	if name == "" {
		name = fmt.Sprintf("method %#x", uint64(f.Function))
		s.unnamed++
	}
	if same != 0 && same != f.Function { // a part of a method that has begun elsewhere
		g := *f
		g.Function = same
		m, ok := s.methods[same]
		if !ok {
			m = s.define(same, name, module, stub)
		}
		s.methods[f.Function] = m
		return m
	}
	return s.define(f.Function, name, module, stub)
}

func (s *stream) define(id clr.FunctionID, name, module string, stub bool) method {
	s.last++
	m := method{s.last, stub}
	s.methods[id] = m
	s.out.Method(&wire.Method{ID: m.id, FunctionID: uint64(id), Name: name, Module: module})
	s.raw.Method(id, name)
	return m
}

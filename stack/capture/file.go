package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Magic is the start of a file and contains the version.
const Magic = "SWSTACK1"

// Image is a mapped module: [Start, End), Bias above its own addresses.
type Image struct {
	Start, End, Bias uint64
	Path             string
	BuildID          string // hexadecimal, "" if it has none
}

// Stack is the copied stack of one stopped thread.
type Stack struct {
	Name  string // not in the file
	Set   int    // index into File.Sets
	Limit int    // walk at most this many frames
	Regs  context.AMD64
	Runs  []memory.Run // the stack first
}

// File is the content of a capture file. The images of a set are sorted by Start.
type File struct {
	Sets   [][]Image
	Stacks []Stack
}

// Table loads the images of set i, with generation i+1. An image with another
// build id than the recorded one has an Err and no unwind data.
func (f *File) Table(i int) *module.Table {
	var mods []module.Module
	for k, im := range f.Sets[i] {
		m := module.LoadELF(uint32(k), im.Path, im.Start, im.End, im.Bias)
		if im.BuildID != "" && m.Err == nil && m.BuildID != im.BuildID {
			m = module.Module{ID: m.ID, Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path,
				Err: fmt.Errorf("%s is build %s now, and was %s when its stacks were captured",
					im.Path, m.BuildID, im.BuildID)}
		}
		mods = append(mods, m)
	}
	return module.NewTable(uint32(i)+1, mods, nil)
}

// Write writes the file.
func (f *File) Write(path string) error { return os.WriteFile(path, f.encode(), 0o600) }

type writer struct{ b []byte }

func (w *writer) word(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

func (w *writer) text(s string) {
	w.word(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (f *File) encode() []byte {
	w := &writer{[]byte(Magic)}
	w.word(uint64(len(f.Sets)))
	for _, set := range f.Sets {
		w.word(uint64(len(set)))
		for _, im := range set {
			w.word(im.Start)
			w.word(im.End)
			w.word(im.Bias)
			w.text(im.Path)
			w.text(im.BuildID)
		}
	}
	w.word(uint64(len(f.Stacks)))
	for i := range f.Stacks {
		w.stack(&f.Stacks[i])
	}
	return w.b
}

func (w *writer) stack(s *Stack) {
	w.word(uint64(s.Set))
	w.word(uint64(s.Limit))
	w.word(s.Regs.RIP)
	for _, v := range s.Regs.GPR {
		w.word(v)
	}
	w.word(uint64(len(s.Runs)))
	for _, r := range s.Runs {
		w.word(r.Addr)
		w.text(string(r.Data))
	}
}

var (
	errCut = errors.New("it is cut: sizes in it lead beyond its end")
	errSet = errors.New("a stack names a set of images that is not there")
)

// Read reads a file. The file is untrusted: every size is checked against the bytes that
// are left. Read returns the whole content or an error.
func Read(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

type reader struct{ buf.Reader }

func decode(b []byte) (*File, error) {
	r := &reader{buf.Reader{Data: b}}
	if string(r.Bytes(uint64(len(Magic)))) != Magic {
		return nil, fmt.Errorf("it does not begin with %q: not a file of seedwalk capture, or another version's", Magic)
	}
	f := &File{Sets: make([][]Image, r.Count(8))}
	for i := range f.Sets {
		f.Sets[i] = r.set()
	}
	f.Stacks = make([]Stack, r.Count(8*20))
	for i := range f.Stacks {
		f.Stacks[i] = r.stack()
	}
	if !r.OK() {
		return nil, errCut
	}
	for i := range f.Stacks {
		if s := f.Stacks[i].Set; s < 0 || s >= len(f.Sets) {
			return nil, errSet
		}
	}
	return f, nil
}

func (r *reader) set() []Image {
	set := make([]Image, r.Count(40))
	for k := range set {
		im := &set[k]
		im.Start, im.End, im.Bias = r.U64(), r.U64(), r.U64()
		im.Path = string(r.Bytes(r.U64()))
		im.BuildID = string(r.Bytes(r.U64()))
	}
	return set
}

func (r *reader) stack() Stack {
	s := Stack{Set: int(r.U64()), Limit: int(r.U64())}
	s.Regs.RIP, s.Regs.Known = r.U64(), 1<<16-1
	for i := range s.Regs.GPR {
		s.Regs.GPR[i] = r.U64()
	}
	s.Runs = make([]memory.Run, r.Count(16))
	for i := range s.Runs {
		s.Runs[i].Addr = r.U64()
		s.Runs[i].Data = r.Bytes(r.U64())
	}
	return s
}

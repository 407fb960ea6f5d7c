package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
)

const magic = "SWPEER01"

// Image is a mapped module: [Start, End), Bias above its own addresses.
type Image struct {
	Start, End, Bias uint64
	Path             string
}

// Walk is one stack to walk.
type Walk struct {
	Name  string // not in the file
	Set   int    // index into File.Sets
	Limit int    // at most this many frames
	Regs  context.AMD64
	Runs  []memory.Run // the stack first
}

// File is what the peer reads. The images of a set are sorted.
type File struct {
	Sets  [][]Image
	Walks []Walk
}

// Table loads the images of set i with generation i+1.
func (f *File) Table(i int) *module.Table {
	var mods []module.Module
	for k, im := range f.Sets[i] {
		mods = append(mods, module.LoadELF(uint32(k), im.Path, im.Start, im.End, im.Bias))
	}
	return module.NewTable(uint32(i)+1, mods, nil)
}

// Write writes the file the peer reads.
func (f *File) Write(path string) error {
	b := []byte(magic)
	word := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	word(uint64(len(f.Sets)))
	for _, set := range f.Sets {
		word(uint64(len(set)))
		for _, im := range set {
			word(im.Start)
			word(im.End)
			word(im.Bias)
			word(uint64(len(im.Path)))
			b = append(b, im.Path...)
		}
	}
	word(uint64(len(f.Walks)))
	for i := range f.Walks {
		w := &f.Walks[i]
		word(uint64(w.Set))
		word(uint64(w.Limit))
		word(w.Regs.RIP)
		for _, v := range w.Regs.GPR {
			word(v)
		}
		word(uint64(len(w.Runs)))
		for _, r := range w.Runs {
			word(r.Addr)
			word(uint64(len(r.Data)))
			b = append(b, r.Data...)
		}
	}
	return os.WriteFile(path, b, 0o600)
}

var errCut = errors.New("peer: the file of walks is cut")

// reader is sticky: after the first short read every value is 0.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) word() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of items of at least size bytes each.
func (r *reader) count(size int) int {
	n := r.word()
	if n > uint64(len(r.b)/size) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

// Read reads a file of walks, such as bench/libunwind/deep.c writes.
func Read(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &reader{b: b}
	if string(r.bytes(uint64(len(magic)))) != magic {
		return nil, fmt.Errorf("peer: %s does not begin with %q", path, magic)
	}
	f := &File{Sets: make([][]Image, r.count(8))}
	for i := range f.Sets {
		f.Sets[i] = r.set()
	}
	f.Walks = make([]Walk, r.count(8*20))
	for i := range f.Walks {
		f.Walks[i] = r.walk()
	}
	if r.bad {
		return nil, errCut
	}
	return f, nil
}

func (r *reader) set() []Image {
	set := make([]Image, r.count(32))
	for k := range set {
		set[k] = Image{Start: r.word(), End: r.word(), Bias: r.word()}
		set[k].Path = string(r.bytes(r.word()))
	}
	return set
}

func (r *reader) walk() Walk {
	w := Walk{Set: int(r.word()), Limit: int(r.word())}
	w.Regs.RIP, w.Regs.Known = r.word(), 1<<16-1
	for i := range w.Regs.GPR {
		w.Regs.GPR[i] = r.word()
	}
	w.Runs = make([]memory.Run, r.count(16))
	for i := range w.Runs {
		w.Runs[i].Addr = r.word()
		w.Runs[i].Data = r.bytes(r.word())
	}
	return w
}

package live

import (
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Loaded is an image as the loader lists it.
type Loaded struct {
	Base  uint64
	Size  uint32 // SizeOfImage
	Stamp uint32 // TimeDateStamp
	Path  string
}

// Images builds module tables of a Windows process and reads each image once. It calls the
// loader and the memory manager, so no thread may be suspended. It is not safe for
// concurrent use.
//
// Source: Win32 VirtualQuery; the PE format's directory 14 marks an image with
// managed code.
type Images struct {
	sys     system
	list    func() []Loaded // nil if the loader gives no list
	known   map[Loaded]*module.Module
	lastID  uint32
	gen     uint32
	managed []*module.Module // precompiled managed images of the last table

	covered bool           // generated code is known from Cover only
	ranges  []memory.Range // regions that Cover found
}

// system is the part of the operating system that Images uses.
type system interface {
	open(path string) (*pe.File, error)
	region(at uint64) (Region, bool)
	memory.Reader
}

func newImages(sys system, list func() []Loaded) *Images {
	return &Images{sys: sys, list: list, known: map[Loaded]*module.Module{}}
}

// Path returns the path of a loaded image by its lower-case name, "" if it is not loaded.
func (l *Images) Path(name string) string {
	for key := range l.known {
		if p := strings.ToLower(key.Path); strings.HasSuffix(p, `\`+name) {
			return key.Path
		}
	}
	return ""
}

// Precompiled returns the managed image of the last Table that contains addr, nil if there is
// none. The table does not list such images as modules, because their code is managed.
func (l *Images) Precompiled(addr uint64) *module.Module {
	for _, m := range l.managed {
		if addr >= m.Start && addr < m.End {
			return m
		}
	}
	return nil
}

// Table builds the current module table of the process. It returns nil if the loader gives
// no list. Every table has a new generation.
func (l *Images) Table() *module.Table {
	loaded := l.list()
	if len(loaded) == 0 {
		return nil
	}
	l.gen++
	var modules []module.Module
	var managed []memory.Range
	l.managed = nil
	prev := l.known
	l.known = make(map[Loaded]*module.Module, len(loaded))
	for i := range loaded {
		m := l.image(&loaded[i], prev)
		if m.PE != nil && m.PE.CLRHeader() {
			managed = append(managed, memory.Range{Start: m.Start, End: m.End})
			l.managed = append(l.managed, m)
			continue
		}
		modules = append(modules, *m)
	}
	return module.NewTable(l.gen, modules, append(managed, l.generated()...))
}

// maxCovered bounds the number of regions of generated code.
const maxCovered = 1 << 12

// Cover adds the region of generated code that contains addr, if there is one. It reports
// whether the next table will differ from the last.
func (l *Images) Cover(addr uint64) bool {
	for _, r := range l.ranges {
		if r.Holds(addr) {
			return false
		}
	}
	r, ok := l.region(addr)
	if !ok || len(l.ranges) >= maxCovered {
		return false
	}
	l.ranges = append(slices.DeleteFunc(l.ranges,
		func(o memory.Range) bool { return o.Start < r.End && r.Start < o.End }), r) // it has grown
	return true
}

// region returns the region of generated code that contains addr, if there is one.
func (l *Images) region(addr uint64) (memory.Range, bool) {
	r, ok := l.sys.region(addr)
	return memory.Range{Start: r.Start, End: r.End}, ok && r.Committed && r.Executable && !r.Image
}

// generated returns the regions of generated code.
func (l *Images) generated() []memory.Range {
	if !l.covered {
		return generated(l.sys)
	}
	prev := l.ranges
	l.ranges = nil
	for _, r := range prev {
		if now, ok := l.region(r.Start); ok {
			l.ranges = append(l.ranges, now)
		}
	}
	return l.ranges
}

// image reads an image, or reuses it from the last table. Images that are not requested
// again are dropped.
func (l *Images) image(key *Loaded, prev map[Loaded]*module.Module) *module.Module {
	m := prev[*key]
	if m == nil {
		l.lastID++
		made := l.load(l.lastID, key)
		m = &made
	}
	l.known[*key] = m
	return m
}

// load reads the file if it is the mapped image, and the memory otherwise. A file may have
// been replaced, and Wine's own libraries may differ from the file of their name.
func (l *Images) load(id uint32, key *Loaded) module.Module {
	end := key.Base + uint64(key.Size)
	f, err := l.sys.open(key.Path)
	if err == nil && f.SizeOfImage() == key.Size && f.Stamp() == key.Stamp {
		return module.PEFromFile(id, f, key.Path, key.Base, end)
	}
	if data := readImage(l.sys, key.Base, uint64(key.Size)); data != nil {
		if f, err = pe.FromMemory(data, key.Path); err == nil {
			return module.PEFromFile(id, f, key.Path, key.Base, end)
		}
	}
	return module.Module{ID: id, Start: key.Base, End: end, Bias: key.Base, Path: key.Path, Err: err}
}

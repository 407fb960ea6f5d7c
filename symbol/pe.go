package symbol

import (
	"bytes"
	"debug/pe"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/seedwalk/seedwalk/internal/wholefile"
	ourpe "github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// PEResolver names functions of Windows images: by the symbols that GNU compilers
// leave in the file, and by exports. Addresses are RVAs. A name covers what its
// function's RUNTIME_FUNCTION does, or for a leaf function, which has none, at
// most maxLeaf bytes. It is safe for concurrent use.
type PEResolver struct {
	mu     sync.Mutex
	images map[string]*peImage
}

// maxLeaf is the size of a leaf function at most: a system call's stub has 32
// bytes on Windows.
const maxLeaf = 32

type peImage struct {
	file  *ourpe.File
	names []peName // sorted by RVA
}

type peName struct {
	rva  uint32
	name string
}

// NewPEResolver returns a namer that reads images as they are asked for.
func NewPEResolver() *PEResolver { return &PEResolver{images: map[string]*peImage{}} }

func (n *PEResolver) image(path string) *peImage {
	n.mu.Lock()
	defer n.mu.Unlock()
	im := n.images[path]
	if im == nil {
		im = loadPE(path)
		n.images[path] = im
	}
	return im
}

func loadPE(path string) *peImage {
	im := &peImage{}
	data, err := wholefile.Read(path, ourpe.MaxFile)
	if err != nil {
		return im
	}
	f, err := ourpe.New(data, path)
	if err != nil {
		return im
	}
	im.file = f
	exports, _ := f.Exports() // what could be read of them
	for i := range exports {
		if e := &exports[i]; e.Name != "" && e.RVA != 0 {
			im.names = append(im.names, peName{e.RVA, e.Name})
		}
	}
	im.names = append(im.names, coffNames(data)...)
	slices.SortStableFunc(im.names, func(a, b peName) int { return int(int64(a.rva) - int64(b.rva)) })
	return im
}

// coffNames are the symbols of functions, which images of other makers lack. debug/pe
// asks for each of them by itself: of a file that is tens of thousands of system calls.
func coffNames(data []byte) (out []peName) {
	f, err := pe.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	const function = 0x20
	for _, s := range f.Symbols {
		if s.Type != function || s.SectionNumber < 1 || int(s.SectionNumber) > len(f.Sections) {
			continue
		}
		out = append(out, peName{f.Sections[s.SectionNumber-1].VirtualAddress + s.Value, s.Name})
	}
	return out
}

// function is the range of the whole function that holds rva, its entries that
// are chained taken together.
func (im *peImage) function(rva uint32) (start, end uint32, ok bool) {
	if im.file == nil {
		return 0, 0, false
	}
	fn, found := im.file.AMD64().Lookup(rva)
	if !found || rva >= fn.End {
		return 0, 0, false
	}
	if first, why := im.file.AMD64().Primary(fn); why == peamd64.OK {
		return first.Begin, fn.End, true
	}
	return fn.Begin, fn.End, true
}

// Name is Resolver.Name for addresses that are RVAs.
func (n *PEResolver) Name(path, _ string, addr uint64) (string, bool) {
	if addr != uint64(uint32(addr)) {
		return "", false
	}
	im, rva := n.image(path), uint32(addr)
	start, _, covered := im.function(rva)
	i := sort.Search(len(im.names), func(i int) bool { return im.names[i].rva > rva }) - 1
	if covered {
		i = sort.Search(len(im.names), func(i int) bool { return im.names[i].rva > start }) - 1
	}
	if i < 0 || covered && im.names[i].rva != start || !covered && rva-im.names[i].rva >= maxLeaf {
		return "", false
	}
	for i > 0 && im.names[i-1].rva == im.names[i].rva && !better(&im.names[i], &im.names[i-1]) {
		i--
	}
	return Demangle(im.names[i].name), true
}

// better prefers, of a system call's two names, the one that programs use.
func better(a, b *peName) bool { return strings.HasPrefix(b.name, "Zw") }

// Function is Resolver.Name for addresses that are RVAs.
func (n *PEResolver) Function(path, _ string, addr uint64) (start, end uint64, ok bool) {
	if addr != uint64(uint32(addr)) {
		return 0, 0, false
	}
	s, e, ok := n.image(path).function(uint32(addr))
	return uint64(s), uint64(e), ok
}

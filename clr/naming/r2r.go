package naming

import (
	"encoding/binary"
	"sort"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
)

// precompiled holds the methods of a ReadyToRun image by the start of their code. readPrecompiled makes it
// from the image in the process's memory. maxImage and maxOver bound its size.
type precompiled struct {
	base   uint64
	begins []uint32 // RVAs of all RUNTIME_FUNCTIONs, sorted
	starts []start  // of methods, sorted by index
	over   []byte   // encoded methods of instantiations
	debug  debugSection
}

// start is the first RUNTIME_FUNCTION of a method.
type start struct {
	index int32
	rid   int32 // 0: a method of another module
	over  span  // of an instantiation: its encoded method
}

// span is a part of precompiled.over.
type span struct{ at, size uint32 }

// Sections of a ReadyToRun image (dotnet/runtime src/coreclr/inc/readytorun.h).
const (
	r2rSignature   = 0x00525452
	r2rFunctions   = 102
	r2rMethodDefs  = 103
	r2rInstances   = 109
	maxR2RSections = 64
	maxFunctions   = 1 << 22
	functionSize   = 12
)

// readPrecompiled reads the tables of the image; nil if there are none, or they are malformed.
func (n *Images) readPrecompiled(h *header, native directory) *precompiled {
	dirs := n.r2rSections(h, native)
	p := &precompiled{base: h.base, debug: debugOf(h, dirs[r2rDebug])}
	if !p.functions(n, h, dirs[r2rFunctions]) {
		return nil
	}
	img := n.lazyImage(h.base, h.sections)
	if img == nil {
		return nil
	}
	p.methods(native32{img.b, img}, dirs)
	return p
}

// r2rSections returns the sections of a ReadyToRun header by type; nil if there is no such header.
func (n *Images) r2rSections(h *header, native directory) map[uint32]directory {
	head, ok := n.bytes(h.at(native.rva), 16)
	if !ok || binary.LittleEndian.Uint32(head) != r2rSignature {
		return nil
	}
	count := binary.LittleEndian.Uint32(head[12:])
	if count > maxR2RSections {
		return nil
	}
	list, ok := n.bytes(h.at(native.rva)+16, int(12*count))
	if !ok {
		return nil
	}
	dirs := map[uint32]directory{}
	for i := range int(count) {
		dirs[binary.LittleEndian.Uint32(list[12*i:])] = directoryAt(list[12*i+4:])
	}
	return dirs
}

// methods reads the tables of methods.
func (p *precompiled) methods(r native32, dirs map[uint32]directory) {
	p.defs(r, dirs[r2rMethodDefs])
	p.instances(r, dirs[r2rInstances])
	sort.Slice(p.starts, func(i, j int) bool { return p.starts[i].index < p.starts[j].index })
}

// maxImage bounds the bytes of an image's sections.
const maxImage = 256 << 20

// lazyImage is an image that a process has loaded. A block of it is read from the process when it is first
// needed: the tables of methods may refer to any section, but they use only a small part of the image.
type lazyImage struct {
	b        []byte // by RVA; memory that cannot be read is 0
	read     []bool // by block
	r        memory.Reader
	base     uint64
	sections []pe.Section
}

const lazyBlock = 1 << 16 // bytes

// lazyImage returns the image of a module at base. It returns nil if the sections need more than maxImage
// bytes.
func (n *Images) lazyImage(base uint64, sections []pe.Section) *lazyImage {
	size := uint64(0)
	for _, s := range sections {
		size = max(size, uint64(s.RVA)+uint64(s.VirtualSize))
	}
	if size > maxImage {
		return nil
	}
	return &lazyImage{make([]byte, size), make([]bool, (size+lazyBlock-1)/lazyBlock), n.r, base, sections}
}

// need makes the given number of bytes at index at ready for use: it reads their blocks, unless they have
// been read. It does nothing if m is nil.
func (m *lazyImage) need(at uint32, bytes int) {
	if m == nil {
		return
	}
	last := (uint64(at) + uint64(bytes) - 1) / lazyBlock
	for i := uint64(at) / lazyBlock; i <= last && i < uint64(len(m.read)); i++ {
		if m.read[i] {
			continue
		}
		m.read[i] = true
		for _, s := range m.sections { // there may be no memory between two sections
			from := max(i*lazyBlock, uint64(s.RVA))
			to := min((i+1)*lazyBlock, uint64(s.RVA)+uint64(s.VirtualSize))
			if from < to {
				m.r.ReadAt(m.b[from:to], m.base+from)
			}
		}
	}
}

func (p *precompiled) functions(n *Images, h *header, d directory) bool {
	count := int(d.size / functionSize)
	if count == 0 || count > maxFunctions {
		return false
	}
	b, ok := n.bytes(h.at(d.rva), count*functionSize)
	if !ok {
		return false
	}
	p.begins = make([]uint32, count)
	for i := range p.begins {
		p.begins[i] = binary.LittleEndian.Uint32(b[functionSize*i:])
	}
	return true
}

// defs reads the array of entry points by method row.
func (p *precompiled) defs(r native32, d directory) {
	if d.size == 0 {
		return
	}
	head, base, ok := r.unsigned(d.rva)
	if !ok {
		return
	}
	size, elements := head&3, head>>2
	for i := range min(elements, maxFunctions) {
		if at, ok := r.element(base, size, i); ok {
			p.add(r, at, int32(i+1), span{})
		}
	}
}

// instances reads the hash table of the entry points of generic instantiations.
func (p *precompiled) instances(r native32, d directory) {
	head, ok := r.byte(d.rva)
	if d.size == 0 || !ok || head>>2 > 31 {
		return
	}
	base, size := d.rva+1, uint32(head&3)
	for b := range uint32(1) << (head >> 2) {
		from, ok1 := r.index(base, size, b)
		to, ok2 := r.index(base, size, b+1)
		if !ok1 || !ok2 || to < from {
			return
		}
		for at, end := base+from, base+to; at < end; {
			delta, next, ok := r.signed(at + 1) // after the low byte of the hash
			if !ok {
				return
			}
			from := at + 1 + uint32(delta)
			if rid, behind, ok := r.method(from); ok {
				p.add(r, behind, rid, p.keep(r.b[from:behind]))
			}
			at = next
		}
	}
}

// maxOver bounds the memory of encoded methods; the largest images have 2 MB.
const maxOver = 16 << 20

// keep copies an encoded method, because the image is not kept. Beyond maxOver, the span is empty.
func (p *precompiled) keep(b []byte) span {
	if len(p.over)+len(b) > maxOver {
		return span{}
	}
	p.over = append(p.over, b...)
	return span{uint32(len(p.over) - len(b)), uint32(len(b))}
}

// add adds the method whose entry is at an offset.
func (p *precompiled) add(r native32, at uint32, rid int32, over span) {
	id, _, ok := r.unsigned(at)
	if !ok {
		return
	}
	if id&1 != 0 { // it has fixups
		id >>= 2
	} else {
		id >>= 1
	}
	if int(id) < len(p.begins) {
		p.starts = append(p.starts, start{int32(id), rid, over})
	}
}

// find returns the last method that begins at or before an address, and the address of its code. It
// does not check where the code ends.
func (p *precompiled) find(ip uint64) (begin uint64, s start, ok bool) {
	rva := ip - p.base
	i := sort.Search(len(p.begins), func(i int) bool { return uint64(p.begins[i]) > rva }) - 1
	j := sort.Search(len(p.starts), func(j int) bool { return int(p.starts[j].index) > i }) - 1
	if i < 0 || j < 0 {
		return 0, s, false
	}
	s = p.starts[j]
	return p.base + uint64(p.begins[s.index]), s, true
}

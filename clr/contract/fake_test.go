package contract

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/seedwalk/seedwalk/context"
)

// fake is a sparse memory that a test writes word by word. It is independent of the reader: its layouts use
// the numbers of the runtime's sources.
type fake struct {
	arch  context.Arch
	bytes map[uint64]byte
	reads int
}

func newFake() *fake { return &fake{arch: context.ArchAMD64, bytes: map[uint64]byte{}} }

func (f *fake) ReadAt(p []byte, addr uint64) bool {
	f.reads++
	for i := range p {
		b, ok := f.bytes[addr+uint64(i)]
		if !ok {
			return false
		}
		p[i] = b
	}
	return true
}

func (f *fake) put(addr uint64, b ...byte) uint64 {
	for i, c := range b {
		f.bytes[addr+uint64(i)] = c
	}
	return addr + uint64(len(b))
}

func (f *fake) u32(addr uint64, vs ...uint32) {
	for i, v := range vs {
		f.put(addr+4*uint64(i), binary.LittleEndian.AppendUint32(nil, v)...)
	}
}

func (f *fake) u64(addr uint64, vs ...uint64) {
	for i, v := range vs {
		f.put(addr+8*uint64(i), binary.LittleEndian.AppendUint64(nil, v)...)
	}
}

func (f *fake) zero(addr uint64, n int) { f.put(addr, make([]byte, n)...) }

// Labels of the world below.
const (
	atTop      = 0x10_0000 // level 5; the four below it follow, 0x1000 apart
	atFragment = 0x20_0000
	atSection  = 0x20_1000
	atHeap     = 0x20_2000
	atMap      = 0x30_0000
	atHeader   = 0x40_0000 // RealCodeHeaders, 0x100 apart
	atInfo     = 0x7f00_0001_0000
	codeBase   = 0x7f00_0000_0000 // of the range section
	codeEnd    = 0x7f00_0002_0000
	mapBase    = codeBase + 0x1000
)

type body struct {
	rel, size uint64 // from mapBase
	stub      uint64 // its kind, 0: a method
	funclets  []uint64
	info      []byte
}

// world is a runtime of x86-64 with one code heap.
func world(bodies []body, linear bool) *fake { return worldOf(context.ArchAMD64, bodies, linear) }

func worldOf(a context.Arch, bodies []body, linear bool) *fake {
	f := newFake()
	f.arch = a
	for i := range 5 {
		f.zero(atTop+uint64(i)*0x1000, 256*8)
	}
	for i := range 4 {
		f.slot(i, codeBase, atTop+uint64(i+1)*0x1000)
	}
	f.slot(4, codeBase, atFragment)
	f.u64(atFragment, 0, codeBase, codeEnd, atSection)
	f.zero(atSection, 72)
	f.u64(atSection, codeBase, codeEnd)
	f.u32(atSection+16, 2)
	f.u64(atSection+40, atHeap)
	f.zero(atHeap, 48)
	f.u64(atHeap+32, mapBase, atMap)
	f.zero(atMap, (codeEnd-codeBase)/32/2+8)
	for i := range bodies {
		f.body(uint64(i), &bodies[i], linear)
	}
	return f
}

// slot writes the entry for ip of the level-th table from the top.
func (f *fake) slot(level int, ip, value uint64) {
	index := ip >> 17 >> (8 * (4 - level)) & 255
	f.u64(atTop+uint64(level)*0x1000+8*index, value)
}

func (f *fake) body(i uint64, b *body, linear bool) {
	f.nibble(b.rel)
	if !linear {
		f.pointers(b.rel, b.size)
	}
	start := mapBase + b.rel
	if b.stub != 0 {
		f.u64(start-8, b.stub)
		return
	}
	h, info := atHeader+i*0x100, atInfo+i*0x100
	f.u64(start-8, h)
	f.u64(h+24, 0x5000+8*i)
	starts := append([]uint64{0}, b.funclets...)
	f.u32(h+32, uint32(len(starts)))
	for k, s := range starts {
		end := b.size
		if k+1 < len(starts) {
			end = starts[k+1]
		}
		if f.arch == context.ArchARM64 {
			f.functionARM64(h+36, info, k, start+s, end-s)
			continue
		}
		f.u32(h+36+12*uint64(k), uint32(start+s-codeBase), uint32(start+end-codeBase), uint32(info-codeBase))
	}
	if f.arch == context.ArchARM64 {
		return
	}
	if b.info == nil {
		b.info = []byte{1, 0, 0, 0}
	}
	f.put(info, b.info...)
}

// functionARM64 writes the k-th of a method's entries and its .xdata record without codes.
func (f *fake) functionARM64(entries, records uint64, k int, begin, size uint64) {
	const packedEpilog, oneCodeWord, ends = 1 << 21, 1 << 27, 0xe4e4e4e4
	at := records + 16*uint64(k)
	f.u32(entries+8*uint64(k), uint32(begin-codeBase), uint32(at-codeBase))
	f.u32(at, uint32(size/4)|packedEpilog|oneCodeWord, ends)
}

// nibble marks a start; the first nibble of a word is its highest.
func (f *fake) nibble(rel uint64) {
	at := atMap + 4*(rel/256)
	w := f.word32(at)
	w |= uint32(rel%32/4+1) << (28 - 4*(rel/32%8))
	f.u32(at, w)
}

// pointers fills the words that lie wholly inside a method.
func (f *fake) pointers(rel, size uint64) {
	for k := rel/256 + 1; k*256+256 <= rel+size; k++ {
		f.u32(atMap+4*k, uint32(rel)&^15|(uint32(rel)&15/4+9))
	}
}

func (f *fake) word32(at uint64) (v uint32) {
	for i := range 4 {
		v |= uint32(f.bytes[at+uint64(i)]) << (8 * i)
	}
	return v
}

// tables returns tables over f that count as proven, without an Open.
func (f *fake) tables(linear bool) *Tables {
	t := &Tables{arch: f.arch, v: view{r: f}, l: layout10, top: atTop, proof: proof{proven: allParts},
		cache: map[uint64]*located{}, images: map[uint64]directory{}}
	t.l.linear = linear
	return t
}

// constant is memory in which every byte has one value.
type constant byte

func (c constant) ReadAt(p []byte, addr uint64) bool {
	for i := range p {
		p[i] = byte(c)
	}
	return true
}

// noise is memory of words that are often addresses, small numbers, or zero; the same address gives the same
// word within a run.
type noise struct {
	run   uint64
	reads int
}

func (n *noise) ReadAt(p []byte, addr uint64) bool {
	n.reads++
	for i := range p {
		a := addr + uint64(i)
		r := rand.New(rand.NewPCG(n.run, a>>3))
		v := [...]uint64{r.Uint64N(1 << 20), 0x7f0000000000 + r.Uint64N(1<<20), r.Uint64(), 0, 1,
			^uint64(0), a &^ 7, 2}[r.IntN(8)]
		p[i] = byte(v >> (8 * (a & 7)))
	}
	return true
}

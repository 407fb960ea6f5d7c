package judge

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/seedwalk/seedwalk/internal/testkit/pevec"
	"github.com/seedwalk/seedwalk/memory"
)

// imageWriter writes a PE file whose sections are the blocks of a vector, each
// at its RVA: so that a vector is read through the same door as a real image.
// It shares no code with the reader.
type imageWriter struct {
	arm64     bool
	base      uint64
	functions []pevec.Function
	blocks    []memory.Run
	size      uint64 // of the image; 0 = whatever the blocks need
}

const (
	peSignatureAt = 0x40
	optionalSize  = 240
	sectionSize   = 40
	maxImageEnd   = 1 << 31
	zeroPadding   = 64 // bytes not listed read as 0; the readers look this far at most
)

// bytes writes the file. The exception directory comes behind everything else.
func (w *imageWriter) bytes() ([]byte, error) {
	blocks, err := w.merged()
	if err != nil {
		return nil, err
	}
	end := w.size
	for _, b := range blocks {
		end = max(end, b.Addr+uint64(len(b.Data)))
	}
	pdata := memory.Run{Addr: (end + 0x1ffff) &^ 0xffff, Data: w.pdata()}
	if pdata.Addr+uint64(len(pdata.Data)) > maxImageEnd {
		return nil, fmt.Errorf("blocks reach to %#x", end)
	}
	blocks = append(blocks, pdata)
	head := make([]byte, peSignatureAt+24+optionalSize+sectionSize*len(blocks))
	w.headers(head, len(blocks), &pdata)
	out := head
	for i, b := range blocks {
		h := head[peSignatureAt+24+optionalSize+sectionSize*i:]
		copy(h, fmt.Sprintf(".b%d", i))
		put(h, 8, uint32(len(b.Data)), uint32(b.Addr), uint32(len(b.Data)), uint32(len(out)))
		put(h, 36, 0x60000020) // code, readable, executable
		out = append(out, b.Data...)
	}
	copy(out, head)
	return out, nil
}

func put(b []byte, at int, values ...uint32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[at+4*i:], v)
	}
}

func (w *imageWriter) headers(b []byte, sections int, pdata *memory.Run) {
	copy(b, "MZ")
	put(b, 0x3c, peSignatureAt)
	p := b[peSignatureAt:]
	copy(p, "PE\x00\x00")
	machine := uint16(0x8664)
	if w.arm64 {
		machine = 0xaa64
	}
	binary.LittleEndian.PutUint16(p[4:], machine)
	binary.LittleEndian.PutUint16(p[6:], uint16(sections))
	binary.LittleEndian.PutUint16(p[20:], optionalSize)
	binary.LittleEndian.PutUint16(p[22:], 0x2022) // executable, large addresses, DLL
	o := p[24:]
	binary.LittleEndian.PutUint16(o, 0x20b) // PE32+
	binary.LittleEndian.PutUint64(o[24:], w.base)
	end := uint32(pdata.Addr) + uint32(len(pdata.Data))
	put(o, 32, 0x1000, 0x200) // alignments
	put(o, 56, (end+0xfff)&^0xfff, uint32(len(b)))
	put(o, 108, 16)                                             // data directories
	put(o, 112+8*3, uint32(pdata.Addr), uint32(len(w.pdata()))) // exception directory
}

func (w *imageWriter) pdata() []byte {
	f := append([]pevec.Function(nil), w.functions...)
	sort.SliceStable(f, func(i, j int) bool { return f[i].Begin < f[j].Begin })
	var out []byte
	for i := range f {
		out = binary.LittleEndian.AppendUint32(out, uint32(f[i].Begin))
		if !w.arm64 {
			out = binary.LittleEndian.AppendUint32(out, uint32(f[i].End))
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(f[i].Data))
	}
	return out
}

// merged sorts the blocks, joins those that touch or overlap, and puts zeros
// behind each where nothing is listed.
func (w *imageWriter) merged() ([]memory.Run, error) {
	in := append([]memory.Run(nil), w.blocks...)
	sort.SliceStable(in, func(i, j int) bool { return in[i].Addr < in[j].Addr })
	var out []memory.Run
	for _, b := range in {
		if b.Addr > maxImageEnd || len(b.Data) > maxImageEnd {
			return nil, fmt.Errorf("block at %#x", b.Addr)
		}
		end := b.Addr + uint64(len(b.Data)) + zeroPadding
		if w.size != 0 {
			end = min(end, max(w.size, b.Addr+uint64(len(b.Data))))
		}
		data := make([]byte, end-b.Addr)
		copy(data, b.Data)
		if n := len(out) - 1; n >= 0 && b.Addr <= out[n].Addr+uint64(len(out[n].Data)) {
			out[n].Data = joined(&out[n], b.Addr, data, len(b.Data))
			continue
		}
		out = append(out, memory.Run{Addr: b.Addr, Data: data})
	}
	return out, nil
}

// joined lays data, of which known bytes are listed, over a block before it.
func joined(a *memory.Run, addr uint64, data []byte, known int) []byte {
	off := int(addr - a.Addr)
	out := a.Data
	if need := off + len(data); need > len(out) {
		out = append(out, make([]byte, need-len(out))...)
	}
	copy(out[off:], data[:known])
	return out
}

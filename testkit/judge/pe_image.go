package judge

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/pevec"
)

// imageWriter writes a PE file. Its sections are the blocks of a vector, each at its RVA. So
// the same reader reads vectors and real images.
type imageWriter struct {
	arm64     bool
	base      uint64
	functions []pevec.Function
	blocks    []memory.Run
	size      uint64 // of the image; 0 = the size that the blocks need
}

const (
	maxImageEnd = 1 << 31
	zeroPadding = 64 // bytes not listed read as 0; the readers look this far at most
)

// bytes returns the file. The exception directory is after everything else.
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
	f := peasm.File{Base: w.base, DLL: true,
		Dirs: map[int]peasm.Directory{peasm.Exception: {RVA: uint32(pdata.Addr),
			Size: uint32(len(pdata.Data))}}}
	if w.arm64 {
		f.Machine = peasm.ARM64
	}
	for i, b := range append(blocks, pdata) {
		f.Sections = append(f.Sections, peasm.Raw(fmt.Sprintf(".b%d", i), uint32(b.Addr), b.Data))
	}
	return f.Bytes(), nil
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

// merged sorts the blocks, joins blocks that touch or overlap, and adds zeros after each block
// where the vector lists nothing.
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

// joined copies data over an earlier block. The vector lists the first known bytes of data.
func joined(a *memory.Run, addr uint64, data []byte, known int) []byte {
	off := int(addr - a.Addr)
	out := a.Data
	if need := off + len(data); need > len(out) {
		out = append(out, make([]byte, need-len(out))...)
	}
	copy(out[off:], data[:known])
	return out
}

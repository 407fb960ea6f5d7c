package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// tinyELF is an ELF file with one segment, one note and one section.
func tinyELF() []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+2*56+2*64+64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 3)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[32:], 64)
	le.PutUint64(b[40:], 64+2*56)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 2)
	le.PutUint16(b[62:], 1)
	ph := b[64:]
	le.PutUint32(ph, 1)
	le.PutUint64(ph[32:], uint64(len(b)))
	le.PutUint64(ph[40:], uint64(len(b)))
	le.PutUint32(ph[56:], 0x6474e550)
	le.PutUint64(ph[56+16:], uint64(len(b)-64))
	le.PutUint64(ph[56+32:], 64)
	sh := b[64+2*56+64:]
	le.PutUint32(sh[4:], 3)
	le.PutUint64(sh[24:], uint64(len(b)-64))
	le.PutUint64(sh[32:], 64)
	copy(b[len(b)-64:], "\x01\x1b\x03\x3b\x20\x00\x00\x00\x00.eh_frame\x00.symtab\x00")
	return b
}

// FuzzELF reads any bytes as a file and as a mapped image, and what it gives as
// call frame information: no panic, no slice outside the bytes, as many answers
// as bytes allow.
func FuzzELF(f *testing.F) {
	f.Add(tinyELF())
	for _, pattern := range []string{"*.so", "*.elf"} {
		for _, b := range sorted(seedFiles(f, pattern)) {
			f.Add(b)
			f.Add(b[:len(b)/2])
			f.Add(mappedELF(b))
		}
	}
	f.Add(packedELF(f))
	for _, at := range []int{4, 5, 18, 32, 40, 54, 56, 58, 60, 62, 64 + 8, 64 + 16, 64 + 32, 64 + 56 + 16,
		64 + 56 + 32, 64 + 112 + 64 + 24} {
		damaged := tinyELF()
		binary.LittleEndian.PutUint16(damaged[at:], 0xfff0)
		f.Add(damaged)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:len(data):len(data)] // a read past the end is a panic
		bounded(t, 2<<20, len(data), func() { readELF(data) })
		file, err := elf.New(data, "fuzz")
		must.True(t, (file == nil) != (err == nil), "file %v and error %v", file, err)
		mapped, _ := elf.FromMemory(data, 0x7f0000000000, "fuzz")
		for _, f := range []*elf.File{file, mapped} {
			if f != nil {
				exerciseELF(t, f, len(data))
			}
		}
	})
}

// readELF reads what naming and unwinding read of an image.
func readELF(data []byte) {
	f, err := elf.New(data, "fuzz")
	if err != nil {
		return
	}
	module.CFISections(f, f.CFISections())
	for _, name := range []string{".eh_frame", ".debug_frame", ".gnu_debugdata", ".gnu_debuglink"} {
		f.Section(name)
	}
	symbol.ELF(f, "", nil)
}

func exerciseELF(t *testing.T, f *elf.File, size int) {
	s := f.CFISections()
	must.True(t, len(s.EHFrame) <= elf.MaxSection && len(s.DebugFrame) <= elf.MaxSection,
		"expanded to %d and %d bytes", len(s.EHFrame), len(s.DebugFrame))
	if len(s.EHFrame)+len(s.DebugFrame) < 1<<16 {
		exercise(t, module.CFISections(f, s), s.TextAddr)
	}
	for _, dyn := range []bool{false, true} {
		n := 0
		for range f.Symbols(dyn) {
			n++
		}
		must.True(t, n <= size/24+1, "%d symbols in %d bytes", n, size)
	}
	for _, seg := range f.Segments() {
		for _, at := range []uint64{seg.Vaddr, seg.Vaddr + seg.Filesz - 1, seg.Vaddr + seg.Memsz} {
			if b, ok := f.BytesAt(at, 4); ok && len(b) != 4 {
				t.Fatalf("BytesAt gave %d bytes", len(b))
			}
		}
	}
	must.True(t, len(f.Problems()) <= 64 && len(f.BuildID()) <= 2*size,
		"%d problems, a build id of %d digits", len(f.Problems()), len(f.BuildID()))
}

// mappedELF lays an image out as the loader does.
func mappedELF(b []byte) []byte {
	file, err := elf.New(b, "seed")
	if err != nil || len(file.Segments()) == 0 {
		return nil
	}
	first, out := file.Segments()[0].Vaddr, []byte(nil)
	for _, s := range file.Segments() {
		if end := s.Vaddr - first + s.Memsz; end > uint64(len(out)) && end < 1<<16 {
			out = append(out, make([]byte, end-uint64(len(out)))...)
		}
		if data, ok := file.BytesAt(s.Vaddr, int(s.Filesz)); ok {
			copy(out[min(s.Vaddr-first, uint64(len(out))):], data)
		}
	}
	return out
}

// packedELF is tinyELF with a .debug_frame that zstd packed: no compiler here
// packs with it.
func packedELF(f testing.TB) []byte {
	z := must.Get(zstd.NewWriter(nil))(f)
	frames := seedFiles(f, "amd64-go.debug_frame")["amd64-go.debug_frame"]
	le := binary.LittleEndian
	body := le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, 2), uint64(len(frames))), 8)
	body = z.EncodeAll(frames, body)
	b := tinyELF()
	name := len(b)
	b = append(b, "\x00.debug_frame\x00"...)
	at := len(b)
	b = append(b, body...)
	heads := 64 + 2*56
	sh := b[heads : heads+64] // the first section is unused
	le.PutUint32(sh, 1)
	le.PutUint32(sh[4:], 1)
	le.PutUint64(sh[8:], 0x800)
	le.PutUint64(sh[24:], uint64(at))
	le.PutUint64(sh[32:], uint64(len(body)))
	le.PutUint64(b[heads+64+24:], uint64(name)) // names lie behind the file now
	le.PutUint64(b[heads+64+32:], uint64(at-name))
	return b
}

// TestPackedELF: the made seed is one the reader expands.
func TestPackedELF(t *testing.T) {
	file := must.Get(elf.New(packedELF(t), "packed"))(t)
	if s := file.CFISections(); s.Err != nil || len(s.DebugFrame) != 2048 {
		t.Errorf("%d bytes, %v", len(s.DebugFrame), s.Err)
	}
}

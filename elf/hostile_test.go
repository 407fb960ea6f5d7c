package elf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// allocated counts the bytes that fn allocates, freed ones included.
func allocated(fn func()) uint64 {
	before, after := runtime.MemStats{}, runtime.MemStats{}
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBombs: the memory that an image takes is in proportion to its size, whatever
// its compressed sections and shared names claim.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	n := uint64(len(zeros))
	z, zs := zlibBytes(t, zeros), zstdBytes(t, zeros)
	for _, c := range []struct {
		name, section string
		flags         uint64
		body          []byte
	}{
		{"zlib", ".debug_frame", shfCompressed, chdr(compressZlib, n, z)},
		{"zlib, the size a lie", ".debug_frame", shfCompressed, chdr(compressZlib, 1<<16, z)},
		{"zstd", ".debug_frame", shfCompressed, chdr(compressZstd, n, zs)},
		{"zstd, the size a lie", ".debug_frame", shfCompressed, chdr(compressZstd, 1<<16, zs)},
		{"more than a section may have", ".debug_frame", shfCompressed,
			chdr(compressZlib, 257<<20, make([]byte, 7<<20))},
		{"gnu", ".zdebug_frame", 0, append(binary.BigEndian.AppendUint64([]byte("ZLIB"), n), z...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var im image
			im.section(sectionHeader{name: c.section, typ: 1, flags: c.flags}, c.body)
			data := im.bytes()
			var s CFISections
			took := allocated(func() { s = mustNew(t, data).CFISections() })
			expect.True(t, took <= uint64(buf.MaxRatio*len(data)+1<<20),
				"%d bytes were allocated for %d", took, len(data))
			expect.True(t, len(s.DebugFrame) == 0 && s.Err != nil, "%d bytes, %v", len(s.DebugFrame), s.Err)
			large := !strings.Contains(c.name, "lie")
			expect.True(t, errors.Is(s.Err, buf.ErrTooLarge) == large, "too large %v: %v", large, s.Err)
		})
	}
}

// TestSharedExpansion: sections that share their compressed bytes share the image's budget, and a
// section that has been expanded can be expanded again.
func TestSharedExpansion(t *testing.T) {
	const size = 8 << 20
	raw := chdr(compressZlib, size, make([]byte, size/buf.MaxRatio+1))
	must.Do(t, zlibOf(raw[24:], size))
	var im image
	im.section(sectionHeader{name: ".a", typ: 1, flags: shfCompressed}, raw)
	for _, name := range []string{".b", ".c", ".d"} {
		im.section(sectionHeader{name: name, typ: 1, flags: shfCompressed}, nil)
	}
	f := mustNew(t, im.bytes())
	first := f.headerOf(".a")
	for _, c := range []struct {
		name  string
		large bool
	}{{".a", false}, {".b", true}, {".c", true}, {".a", false}, {".d", true}} {
		s := f.headerOf(c.name)
		s.off, s.size = first.off, first.size
		if _, _, err := f.Section(c.name); errors.Is(err, buf.ErrTooLarge) != c.large ||
			!c.large && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// zlibOf writes a stream of size zeros to the beginning of b.
func zlibOf(b []byte, size int) error {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(make([]byte, size))
	w.Close()
	if copy(b, out.Bytes()) < out.Len() {
		return errors.New("no room")
	}
	return nil
}

// TestSharedNotes: segments that share their notes share the bound of an image's notes.
func TestSharedNotes(t *testing.T) {
	var im image
	im.section(sectionHeader{name: ".note", typ: 1}, make([]byte, 12*(maxNoteCount/2)))
	data := im.bytes()
	at := mustNew(t, data).headerOf(".note").off
	for range 100 {
		im.segments = append(im.segments,
			program{typ: ptNote, off: at + 100*56, filesz: 12 * (maxNoteCount / 2), alignTo: 4})
	}
	f := mustNew(t, im.bytes())
	expect.Equal(t, f.notes, maxNoteCount, "notes read")
}

// TestSharedNames: symbols and sections that all have one long name.
func TestSharedNames(t *testing.T) {
	const count = 4000
	var im image
	le := binary.LittleEndian
	table := make([]byte, count*symbolSize)
	for i := range count {
		le.PutUint32(table[i*symbolSize:], 1)
	}
	im.section(sectionHeader{name: ".symtab", typ: shtSymtab, link: 2}, table)
	names := append(make([]byte, 1), strings.Repeat("n", maxName)...)
	im.section(sectionHeader{name: ".strtab", typ: 3}, names)
	for range count {
		im.section(sectionHeader{name: "s", typ: 1}, nil)
	}
	data := im.bytes()
	shoff := le.Uint64(data[40:])
	strtab := le.Uint64(data[shoff+2*64+24:])
	last := shoff + 64*uint64(le.Uint16(data[62:]))
	le.PutUint64(data[last+24:], strtab) // the names of sections are those of symbols
	le.PutUint64(data[last+32:], uint64(len(names)))
	got, text := 0, 0
	took := allocated(func() {
		for s := range mustNew(t, data).Symbols(false) {
			got++
			text += len(s.Name)
		}
	})
	expect.True(t, got == count && text >= len(names), "%d symbols, names of %d bytes", got, text)
	expect.True(t, took <= uint64(16*len(data)), "%d bytes were allocated for %d", took, len(data))
}

// gnuHash is a DT_GNU_HASH table.
func gnuHash(buckets []uint32, first, bloom uint32, chain ...uint32) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(buckets)))
	b = le.AppendUint32(b, first)
	b = le.AppendUint32(b, bloom)
	b = le.AppendUint32(b, 6)
	b = append(b, make([]byte, 8*bloom)...)
	for _, v := range append(buckets, chain...) {
		b = le.AppendUint32(b, v)
	}
	return b
}

// TestGNUHashCount: of damaged tables too, each in the time its bytes take.
func TestGNUHashCount(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want uint64
	}{
		{"a chain of two", gnuHash([]uint32{3}, 3, 1, 2, 1), 5},
		{"two buckets", gnuHash([]uint32{3, 4}, 3, 1, 3, 8, 1), 6},
		{"no symbols", gnuHash([]uint32{0}, 7, 1), 7},
		{"a chain without end", gnuHash([]uint32{3}, 3, 1, 2, 2), 5},
		{"a bucket far outside", gnuHash([]uint32{0x7fffffff}, 1, 1, 2, 2, 2), 0x7fffffff},
		{"a bucket just outside", gnuHash([]uint32{4}, 1, 1, 2, 2), 4},
		{"buckets that are not there", gnuHash([]uint32{1}, 1, 1)[:16], 1},
		{"a filter that is not there", gnuHash([]uint32{1}, 1, 1<<20)[:40], 1},
		{"nothing", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, gnuHashCount(c.b), c.want, "symbols")
		})
	}
}

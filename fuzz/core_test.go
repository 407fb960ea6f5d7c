package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// tinyCore is a core with one thread and one piece of memory.
func tinyCore() []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+2*56+20+336+64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 4)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	p := b[64:]
	le.PutUint32(p, 4)
	le.PutUint64(p[8:], 64+2*56)
	le.PutUint64(p[32:], 20+336)
	le.PutUint32(p[56:], 1)
	le.PutUint64(p[56+8:], 64+2*56+20+336)
	le.PutUint64(p[56+16:], 0x1000)
	le.PutUint64(p[56+32:], 64)
	le.PutUint64(p[56+40:], 0x1000)
	n := b[64+2*56:]
	le.PutUint32(n, 5)
	le.PutUint32(n[4:], 336)
	le.PutUint32(n[8:], 1)
	copy(n[12:], "CORE")
	return b
}

// FuzzCore reads any bytes as a core: no panic, no memory that is not in the file,
// as many threads, files and mappings as bytes allow.
func FuzzCore(f *testing.F) {
	f.Add(tinyCore())
	f.Add(tinyCore()[:300])
	for _, at := range []int{16, 18, 32, 54, 56, 64, 72, 96, 120, 128, 152, 160, 176, 180, 184} {
		b := tinyCore()
		binary.LittleEndian.PutUint32(b[at:], 0xfffffff0)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:len(data):len(data)] // a read past the end is a panic
		c, err := dump.New(data)
		if c == nil {
			must.True(t, err != nil, "nothing, and no reason")
			return
		}
		maps := c.Maps()
		must.True(t, 300*len(c.Threads) <= len(data) && 24*len(c.Files) <= len(data) &&
			len(maps) <= len(data), "%d threads, %d files, %d mappings of %d bytes", len(c.Threads),
			len(c.Files), len(maps), len(data))
		m := dump.NewModules(c, nil)
		defer m.Close()
		var b [64]byte
		for i := range maps {
			if maps[i].End < maps[i].Start {
				t.Fatalf("%+v", maps[i])
			}
			c.ReadSome(b[:], maps[i].Start)
			c.ReadSome(b[:], maps[i].End-1)
			if maps[i].Path == "" || maps[i].Path == "[vdso]" { // a path of the fuzzer's is not to be opened
				m.Image(&maps[i])
			}
		}
	})
}

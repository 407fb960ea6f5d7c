package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/symbol/clrnames"
)

// runtimeImage is an image whose words the fuzzer chooses: pointers, plain words, pointers to a name,
// and pointers to functions.
type runtimeImage []byte

const runtimeBase = 0x1000

func (im runtimeImage) word(addr uint64) (uint64, bool) {
	i := addr - runtimeBase
	if addr < runtimeBase || i%8 != 0 || i+8 > uint64(len(im)) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(im[i:]), true
}

func (im runtimeImage) Pointers(yield func(addr, value uint64) bool) {
	for i := 0; i+8 <= len(im); i += 8 {
		v := binary.LittleEndian.Uint64(im[i:])
		if v%4 != 1 && !yield(runtimeBase+uint64(i), runtimeBase+v%(1<<16)) {
			return
		}
	}
}

func (im runtimeImage) Word(addr uint64) (uint64, bool) {
	v, ok := im.word(addr)
	return v, ok && v%4 == 1
}

func (im runtimeImage) String(addr uint64) (string, bool) { return "Name", addr%4 == 2 }
func (im runtimeImage) IsFunction(addr uint64) bool       { return addr%4 == 3 }

// Tables of a hostile runtime end, and give no more names than rows.
func FuzzCLRNames(f *testing.F) {
	var seed []byte
	for range 8 { // a table of QCalls
		seed = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(seed, 2), 3)
	}
	f.Add(seed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		im := runtimeImage(data[:min(len(data), 1<<16)])
		names, c := clrnames.Read(im)
		if rows := c.FCalls + c.QCalls; len(names) > rows || c.Classes > len(im)/8 {
			t.Fatalf("%d names, %+v", len(names), c)
		}
	})
}

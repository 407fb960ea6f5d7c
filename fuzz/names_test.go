package fuzz

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/symbol/clrnames"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// FuzzMiniDebugInfo reads any bytes as a compressed .gnu_debugdata: no panic, and no
// more memory than a fixed start and a multiple of the input's size.
func FuzzMiniDebugInfo(f *testing.F) {
	packed := pack(f, elfasm.Image())
	f.Add(packed)
	f.Add(packed[:len(packed)/2])
	f.Add(pack(f, nil))
	f.Add(pack(f, make([]byte, 1<<16)))
	f.Fuzz(func(t *testing.T, in []byte) {
		file := elfasm.File{Sections: []elfasm.Section{{Name: ".gnu_debugdata",
			Type: elfasm.ProgBits, Body: in}}}
		im := must.Get(elf.New(file.Bytes(), "packed"))(t)
		bounded(t, 1<<20, len(in), func() { symbol.ELF(im, "", nil) })
	})
}

func pack(f *testing.F, data []byte) []byte {
	var b bytes.Buffer
	w := must.Get(xz.WriterConfig{DictCap: 1 << 20, BlockSize: 1 << 16}.NewWriter(&b))(f)
	w.Write(data)
	must.Do(f, w.Close())
	return b.Bytes()
}

// FuzzSymbols looks names up in any symbols, overlapping ones too: an address that
// a symbol covers has the name of one that covers it, an address that none covers
// has no name.
func FuzzSymbols(f *testing.F) {
	f.Add([]byte{0, 16, 8, 2, 8, 2, 3, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		const base = 0x7f00
		in = in[:min(len(in), 64)]
		var symbols []symbol.Symbol
		for i := 0; i+1 < len(in); i += 2 {
			symbols = append(symbols,
				symbol.Symbol{Name: string(rune('a' + i)), Addr: base + uint64(in[i]), Size: uint64(in[i+1])})
		}
		table := symbol.NewTable(symbols, nil)
		for addr := uint64(base); addr < base+0x200; addr++ {
			name, off, ok := table.Find(addr)
			covered, named := false, false
			for i := range symbols {
				if s := &symbols[i]; addr-s.Addr < s.Size {
					covered = true
					named = named || s.Addr == addr-off
				}
			}
			if ok != covered || ok && !named {
				t.Fatalf("%#x: %q+%#x, %v; covered %v\n%+v", addr, name, off, ok, covered, symbols)
			}
		}
	})
}

// unreadable is a process without readable memory.
type unreadable struct{}

func (unreadable) ReadAt([]byte, uint64) bool { return false }

// FuzzDescriptor reads any bytes as a runtime's data contract: no panic, also of
// those who take their offsets from it.
func FuzzDescriptor(f *testing.F) {
	f.Add([]byte(`{"version":0,"types":{"A":{"!":8,"b":[4,"int"]}},"globals":{"x":["0x1","u8"],"y":[[3],"pointer"]},"contracts":{"C":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := contract.ParseDescriptor(text); err == nil {
			naming.New(unreadable{}, d)
		}
	})
}

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

// A name may hold anything: none stops the program, and what comes out is no longer
// than what a few type parameters for each arity make of it.
func FuzzDemangle(f *testing.F) {
	for _, s := range []string{"", "App+clo@12-3::Invoke", "A+_Closure$__5-0::_Lambda$__0",
		"<StartupCode$A>.$B+c@1-2T`1::X-IY`1-Z", "A.B+<>c.<M>b__0_0", "<<<>>>d::MoveNext (async)", "+::`9",
		"A`1.<", "..::..", "<-.->d::MoveNext (iterator)", "D::A.IMap<B.C,D[]>.get_Item"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := demangle.Name(s); len(got) > 32*len(s)+32 {
			t.Errorf("%d bytes of %d", len(got), len(s))
		}
	})
}

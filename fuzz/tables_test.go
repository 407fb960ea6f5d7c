package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// flat is a process's memory from address 0 on. It counts reads.
type flat struct {
	b     []byte
	reads int
}

func (f *flat) ReadAt(p []byte, addr uint64) bool {
	f.reads++
	if end := addr + uint64(len(p)); end < addr || end > uint64(len(f.b)) {
		return false
	}
	copy(p, f.b[addr:])
	return true
}

// Where the runtime of FuzzTables has its parts.
const (
	tablesDAC  = 0x1000
	tablesTop  = 0x2000 // and four levels, 0x800 apart
	tablesLeaf = 0x5000 // fragment, section, heap, 0x100 apart
	tablesMap  = 0x6000
	tablesCode = 0x8000
	tablesSize = 0x10000
)

// runtime9 is an ELF image that exports the debugger's table of .NET 9, or of .NET 8.
func runtime9(t testing.TB, entries uint64) *elf.File {
	const dynsym = 11
	symbol := make([]byte, 48)
	le := binary.LittleEndian
	le.PutUint32(symbol[24:], 1)
	symbol[28] = 0x11
	le.PutUint16(symbol[30:], 1)
	le.PutUint64(symbol[32:], tablesDAC)
	le.PutUint64(symbol[40:], 8*entries)
	f := elfasm.File{Sections: []elfasm.Section{
		{Name: ".dynsym", Type: dynsym, Link: 2, EntrySize: 24, Body: symbol},
		{Name: ".dynstr", Type: elfasm.StrTab, Body: []byte("\x00g_dacTable\x00")},
	}}
	return must.Get(elf.New(f.Bytes(), "runtime"))(t)
}

// tablesMemory has one code heap with one method.
func tablesMemory() []byte {
	b := make([]byte, tablesSize)
	word := func(at int, vs ...uint64) {
		for i, v := range vs {
			binary.LittleEndian.PutUint64(b[at+8*i:], v)
		}
	}
	word(tablesDAC, tablesTop, 0, 0, 0, 0x1800, 0x1808)
	word(0x1800, 0x1900, 0x1a00)
	for level := range 4 {
		word(tablesTop+0x800*level, uint64(tablesTop+0x800*(level+1)))
	}
	word(tablesTop+4*0x800, tablesLeaf)
	word(tablesLeaf, 0, tablesCode, tablesSize, tablesLeaf+0x100)
	word(tablesLeaf+0x100, tablesCode, tablesSize, 2, 0x1900, 0, tablesLeaf+0x200)
	word(tablesLeaf+0x200, 0, 0, tablesCode, tablesSize, tablesCode, tablesMap)
	word(tablesMap, 0x00100000) // a method 64 bytes from the map's base on
	const start, header = tablesCode + 64, tablesLeaf + 0x300
	word(start-8, header)
	word(header, 0x7000, 0, 0, 0x7100, 1|uint64(start-tablesCode)<<32, uint64(start-tablesCode+32)|0x4000<<32)
	b[tablesCode+0x4000] = 1
	return b
}

// FuzzTables has hostile memory prove itself the tables of a runtime: no panic, and a bounded
// number of reads for each try and each lookup.
func FuzzTables(f *testing.F) {
	f.Add(tablesMemory(), false)
	f.Add(tablesMemory(), true)
	f.Add([]byte{}, false)
	images := map[bool]*elf.File{false: runtime9(f, 158), true: runtime9(f, 156)}
	f.Fuzz(func(t *testing.T, b []byte, old bool) {
		mem := &flat{b: b[:min(len(b), 1<<20)]}
		tables, err := contract.Open(mem, images[old], 0)
		if err != nil {
			return
		}
		const most = 1 << 12
		for range 3 {
			mem.reads = 0
			if tables.Verify(); mem.reads > most {
				t.Fatalf("%d reads", mem.reads)
			}
		}
		var m contract.Method
		for ip := uint64(tablesCode); ip < tablesSize; ip += 0x100 {
			tables.Find(ip, &m)
		}
	})
}

// The memory that FuzzTables begins with is a runtime's as far as the code header.
func TestTablesSeed(t *testing.T) {
	tables := must.Get(contract.Open(&flat{b: tablesMemory()}, runtime9(t, 158), 0))(t)
	tables.Verify()
	if e := tables.Evidence(); e.Map != 0 || e.Heaps != 1 || e.Methods != 1 {
		t.Errorf("%+v", e)
	}
}

package contract

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// Labels of a runtime whose tables can be verified, in addition to those of world. The numbers are copied
// from the runtime's sources again: they are independent of the reader.
const (
	atDebugTable  = 0x61_0000
	atManagers    = 0x61_1000
	jitManager    = 0x61_2000
	imageManager  = 0x61_3000
	atDescs       = 0x62_0000 // 0x200 apart: the chunk, 24 bytes on the MethodDesc
	atMethodTable = 0x63_0000
	atModule      = 0x64_0000
	atRows        = 0x65_0000
	atDebugInfo   = 0x66_0000 // 0x40 apart
	atFragment2   = 0x20_4000
	atSection2    = 0x20_5000
	imageBase     = codeBase + 0x40000
	imageEnd      = imageBase + 0x3000
)

func descAt(i int) uint64 { return atDescs + 0x200*uint64(i) + 24 }

// provable is a runtime of .NET 9 with a code heap and, if image is set, a precompiled image.
func provable(bodies []body, image bool) *fake {
	f := world(bodies, true)
	f.zero(atDebugTable, 158*8)
	f.u64(atDebugTable, atTop)
	f.u64(atDebugTable+4*8, atManagers, atManagers+8)
	f.u64(atManagers, jitManager, imageManager)
	f.u64(atSection+24, jitManager)
	f.u64(atHeap+16, mapBase, codeEnd)
	f.zero(atMethodTable, 64)
	f.u64(atMethodTable+24, atModule)
	f.zero(atModule, 1200)
	f.zero(atRows, 8*64)
	f.u64(atModule+656, 0, atRows, 64) // next, table, count
	for i := range bodies {
		if bodies[i].stub == 0 {
			f.describe(i, &bodies[i])
		}
	}
	if image {
		f.image()
	}
	return f
}

// describe writes a method's MethodDesc, its row, and its debug information.
func (f *fake) describe(i int, b *body) {
	start, h, desc := mapBase+b.rel, atHeader+uint64(i)*0x100, descAt(i)
	info := atDebugInfo + 0x40*uint64(i)
	f.u64(h, info)
	f.u64(h+24, desc)
	f.zero(desc-24, 0x100)
	f.u64(desc-24, atMethodTable)
	f.put(desc, byte(i+1)) // the row
	f.u64(desc+16, start)
	f.u64(atRows+8*uint64(i+1), desc)
	// No extras; 2 bytes of boundaries, none of variables; one boundary: native 0, IL 0.
	f.zero(info, 32)
	f.put(info, 0, 0x02, 0x01, 0x03)
}

// image writes a precompiled image of two functions, and its section.
func (f *fake) image() {
	f.slot(4, imageBase, atFragment2)
	f.u64(atFragment2, 0, imageBase, imageEnd, atSection2)
	f.zero(atSection2, 72)
	f.u64(atSection2, imageBase, imageEnd)
	f.u64(atSection2+24, imageManager, atModule)
	f.u64(atModule+288, imageBase)
	f.zero(imageBase, 0x3000)
	f.put(imageBase, 'M', 'Z')
	f.u32(imageBase+0x3c, 0x80)
	f.put(imageBase+0x80, 'P', 'E', 0, 0, 0x64, 0x86)
	f.put(imageBase+0x94, 240)
	f.put(imageBase+0x98, 0x0b, 0x02)
	f.u32(imageBase+0x98+108, 16)
	f.u32(imageBase+0x98+112+3*8, 0x1000, 24)
	f.u32(imageBase+0x1000, 0x2000, 0x2010, 0x2800, 0x2010, 0x2040, 0x2800)
	f.put(imageBase+0x2800, 1, 0, 0, 0)
}

// supposed returns tables over f with an assumed layout.
func (f *fake) supposed(t testing.TB) *Tables {
	t.Helper()
	d := must.Get(ParseDescriptor(net9))(t)
	tables := f.tables(true)
	tables.desc, tables.proof = d, proof{dac: atDebugTable}
	return tables
}

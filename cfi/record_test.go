package cfi

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// cieSpec writes CIEs of every kind.
type cieSpec struct {
	version uint8
	aug     string
	augData []byte
	ehData  bool
}

func (a *asm) cie(s cieSpec) int {
	off := a.begin()
	a.cieID().u8(s.version).str(s.aug)
	if s.ehData {
		a.u64(0xdeadbeef)
	}
	if s.version == 4 {
		a.u8(8, 0)
	}
	a.uleb(1).sleb(-8)
	if s.version == 1 {
		a.u8(16)
	} else {
		a.uleb(16)
	}
	if len(s.aug) > 0 && s.aug[0] == 'z' {
		a.block(s.augData...)
	}
	a.u8(DW_CFA_def_cfa, 7, 8, DW_CFA_offset|16, 1).end()
	return off
}

// TestRecordKinds reads 32- and 64-bit records of both sections, all CIE
// versions and augmentations.
func TestRecordKinds(t *testing.T) {
	for _, c := range []struct {
		name        string
		spec        cieSpec
		debug, wide bool
		signal, b   bool
	}{
		{name: "v1", spec: cieSpec{version: 1}},
		{name: "v3", spec: cieSpec{version: 3}},
		{name: "v4", spec: cieSpec{version: 4}},
		{name: "v1 64-bit", spec: cieSpec{version: 1}, wide: true},
		{name: "v1 debug", spec: cieSpec{version: 1}, debug: true},
		{name: "v3 debug 64-bit", spec: cieSpec{version: 3}, debug: true, wide: true},
		{name: "v4 debug 64-bit", spec: cieSpec{version: 4}, debug: true, wide: true},
		{name: "z", spec: cieSpec{version: 1, aug: "z"}},
		{name: "zR", spec: cieSpec{version: 1, aug: "zR", augData: []byte{DW_EH_PE_absptr}}},
		{name: "zPLR", spec: cieSpec{version: 1, aug: "zPLR", augData: []byte{0x9b, 1, 2, 3, 4, 0x1b, 0}}},
		{name: "zRS", spec: cieSpec{version: 1, aug: "zRS", augData: []byte{0}}, signal: true},
		{name: "zRB", spec: cieSpec{version: 1, aug: "zRB", augData: []byte{0}}, b: true},
		{name: "zRG", spec: cieSpec{version: 1, aug: "zRG", augData: []byte{0}}},
		{name: "S without z", spec: cieSpec{version: 1, aug: "S"}, signal: true},
		{name: "eh", spec: cieSpec{version: 1, aug: "eh", ehData: true}},
		{name: "z and an unknown letter", spec: cieSpec{version: 1, aug: "zRQ", augData: []byte{0, 1, 2, 3}}},
		{name: "omitted personality", spec: cieSpec{version: 1, aug: "zPR", augData: []byte{0xff, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := asm{debug: c.debug, wide: c.wide}
			cie := a.cie(c.spec)
			a.begin()
			a.ciePtr(cie).u64(fnLo).u64(fnHi - fnLo)
			if len(c.spec.aug) > 0 && c.spec.aug[0] == 'z' {
				a.block(9, 9, 9, 9) // an LSDA
			}
			a.u8(DW_CFA_offset|3, 2).end()
			s := Sections{Arch: context.ArchAMD64, EHFrame: a.b}
			if c.debug {
				s = Sections{Arch: context.ArchAMD64, DebugFrame: a.b}
			}
			tab := must.Get(Load(s))(t)
			var m Machine
			var row Row
			why := m.Row(tab, fnHi-1, &row)
			must.True(t, why == None && row.CFA.Off == 8 && row.Regs[3].Off == -16 && row.Regs[16].Off == -8,
				"%v %+v", why, row)
			f := row.FDE
			expect.True(t, f.Lo == fnLo && f.Hi == fnHi && f.RA == 16 && f.Signal == c.signal &&
				f.BKey == c.b && f.DebugFrame == c.debug, "FDE = %+v", f)
			expect.True(t, row.BKey == c.b, "BKey = %v", row.BKey)
			why = m.Row(tab, fnHi, &row)
			expect.True(t, why == NoInfo && !row.BKey, "behind it: %v, BKey = %v", why, row.BKey)
		})
	}
}

// TestWideIDs: the id of a 64-bit .eh_frame record may have eight bytes.
func TestWideIDs(t *testing.T) {
	a := asm{wide: true}
	cie := a.begin()
	a.u64(0).u8(1).str("").uleb(1).sleb(-8).u8(16).u8(DW_CFA_def_cfa, 7, 8).end()
	a.begin()
	a.u64(uint64(len(a.b) - cie)).u64(fnLo).u64(16).end()
	f, why := table(t, context.ArchAMD64, a.b).Find(fnLo + 15)
	expect.True(t, why == None && f.Hi == fnLo+16, "%v %+v", why, f)
}

// TestPersonalityEncodings: every encoding of a personality pointer is stepped
// over by its size, indirect or not.
func TestPersonalityEncodings(t *testing.T) {
	sizes := map[uint8]int{0x00: 8, 0x01: 2, 0x02: 2, 0x03: 4, 0x04: 8, 0x09: 2, 0x0a: 2, 0x0b: 4, 0x0c: 8}
	for format, n := range sizes {
		for _, app := range []uint8{0x00, 0x10, 0x20, 0x30, 0x40, 0x80, 0x90, 0xb0} {
			data := append([]byte{format | app}, make([]byte, n)...)
			if format == 1 || format == 9 {
				data[1] = 0x80
			}
			data = append(data, DW_EH_PE_absptr)
			var a asm
			cie := a.cie(cieSpec{version: 1, aug: "zPR", augData: data})
			a.begin()
			a.ciePtr(cie).u64(fnLo).u64(8).block().end()
			f, why := table(t, context.ArchAMD64, a.b).Find(fnLo)
			expect.True(t, why == None && f.Hi == fnLo+8, "encoding %#x: %v %+v", format|app, why, f)
		}
	}
}

// TestPersonalityAligned: an aligned pointer starts at a multiple of its size.
func TestPersonalityAligned(t *testing.T) {
	for pad := 0; pad < 8; pad++ {
		var a asm
		off := a.begin()
		a.cieID().u8(1).str("zPR").uleb(1).sleb(-8).u8(16)
		at := len(a.b) + 2 // after the length and the encoding
		base := uint64(pad)
		fill := int(-(base + uint64(at)) & 7)
		a.block(append(append([]byte{DW_EH_PE_aligned}, make([]byte, fill+8)...), DW_EH_PE_absptr)...)
		a.end()
		a.begin()
		a.ciePtr(off).u64(fnLo).u64(8).block().end()
		tab := must.Get(Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b, EHFrameAddr: base}))(t)
		f, why := tab.Find(fnLo)
		expect.True(t, why == None && f.Hi == fnLo+8, "pad %d: %v %+v", pad, why, f)
	}
}

// TestFDEEncodings: every encoding of an FDE's start, with the value it must
// decode to.
func TestFDEEncodings(t *testing.T) {
	const base, text, got = 0x500000, 0x600000, 0x700000
	write := map[uint8]func(*asm, uint64){
		0x00: func(a *asm, v uint64) { a.u64(v) },
		0x01: func(a *asm, v uint64) { a.uleb(v) },
		0x02: func(a *asm, v uint64) { a.u16(uint16(v)) },
		0x03: func(a *asm, v uint64) { a.u32(uint32(v)) },
		0x04: func(a *asm, v uint64) { a.u64(v) },
		0x09: func(a *asm, v uint64) { a.sleb(int64(v)) },
		0x0a: func(a *asm, v uint64) { a.u16(uint16(v)) },
		0x0b: func(a *asm, v uint64) { a.u32(uint32(v)) },
		0x0c: func(a *asm, v uint64) { a.u64(v) },
	}
	for format, put := range write {
		for _, app := range []uint8{0, DW_EH_PE_pcrel, DW_EH_PE_textrel, DW_EH_PE_datarel} {
			for _, delta := range []int64{0x123, -0x123} {
				signed := format == 0 || format&8 != 0 || format == 4
				if delta < 0 && (!signed || app == 0) {
					continue
				}
				var a asm
				cie := a.cie(cieSpec{version: 1, aug: "zR", augData: []byte{format | app}})
				a.begin()
				a.ciePtr(cie)
				want := uint64(delta)
				switch app {
				case DW_EH_PE_pcrel:
					want += base + uint64(len(a.b))
				case DW_EH_PE_textrel:
					want += text
				case DW_EH_PE_datarel:
					want += got
				}
				put(&a, uint64(delta))
				put(&a, 0x20)
				a.block().end()
				tab, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b, EHFrameAddr: base,
					TextAddr: text, DataAddr: got})
				must.True(t, err == nil, "%#x: %v", format|app, err)
				if f, why := tab.Find(want); why != None || f.Lo != want || f.Hi != want+0x20 {
					t.Errorf("encoding %#x %#x: %v %+v, want %#x", format|app, delta, why, f, want)
				}
			}
		}
	}
}

func TestBadFDEEncodings(t *testing.T) {
	for _, enc := range []uint8{0x80, 0x9b, 0x40, 0x4b, 0x60, 0x70, 0x05, 0x0f, 0xff} {
		var a asm
		cie := a.cie(cieSpec{version: 1, aug: "zR", augData: []byte{enc}})
		a.begin()
		a.ciePtr(cie).u64(fnLo).u64(8).block().end()
		_, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b})
		var fe *FormatError
		expect.True(t, errors.As(err, &fe) && fe.Reason == BadEncoding && fe.Value == uint64(enc),
			"encoding %#x: %v", enc, err)
	}
}

// TestSegmentAndAddressSize: CIE version 4 states both.
func TestSegmentAndAddressSize(t *testing.T) {
	a := asm{debug: true}
	cie := a.begin()
	a.cieID().u8(4).str("").u8(4, 2).uleb(1).sleb(-8).uleb(16).u8(DW_CFA_def_cfa, 7, 8).end()
	a.begin()
	a.ciePtr(cie).u16(0x33).u32(fnLo).u32(8).end()
	tab := must.Get(Load(Sections{Arch: context.ArchAMD64, DebugFrame: a.b}))(t)
	f, why := tab.Find(fnLo + 7)
	expect.True(t, why == None && f.Lo == fnLo && f.Hi == fnLo+8, "%v %+v", why, f)
}

package cfi

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestDamage: every kind of damage gets a typed reason, and does not lose the
// good FDE at fnLo beside it.
func TestDamage(t *testing.T) {
	good := func(a *asm) { a.simpleFDE(a.simpleCIE()) }
	for _, c := range []struct {
		name   string
		build  func(a *asm)
		want   Reason
		where  string
		lost   bool // the good FDE cannot be reached after the damage
		before bool // the good FDE is before the damage
	}{
		{name: "length past the section", build: func(a *asm) { a.u32(0x7fff) }, want: Truncated,
			where: "record length", before: true},
		{name: "reserved length", build: func(a *asm) { a.u32(0xfffffff5) }, want: BadRecord,
			where: "record length", before: true},
		{name: "64-bit length that wraps", build: func(a *asm) { a.u32(0xffffffff).u64(^uint64(0) - 3) },
			want: Truncated, where: "record length", before: true},
		{name: "64-bit length cut", build: func(a *asm) { a.u32(0xffffffff).u32(0) }, want: Truncated,
			where: "record length", before: true},
		{name: "two bytes of a length", build: func(a *asm) { a.u16(1) }, want: Truncated,
			where: "record length", before: true},
		{name: "id cut", build: func(a *asm) { a.begin(); a.u16(0).end() },
			want: Truncated, where: "record id"},
		{name: "CIE pointer before the section",
			build: func(a *asm) { a.begin(); a.u32(0x7000).u64(0).u64(0).end() },
			want:  BadRecord, where: "FDE"},
		{name: "CIE pointer at itself", build: func(a *asm) { a.begin(); a.u32(4).u64(0).u64(0).end() },
			want: BadRecord, where: "FDE"},
		{name: "CIE pointer forward",
			build: func(a *asm) { a.begin(); a.u32(^uint32(0) - 64).u64(0).u64(0).end() },
			want:  BadRecord, where: "FDE"},
		{name: "unknown CIE version", build: func(a *asm) { a.cie(cieSpec{version: 2}) },
			want: Unsupported, where: "CIE version"},
		{name: "version 5", build: func(a *asm) { a.cie(cieSpec{version: 5}) },
			want: Unsupported, where: "CIE version"},
		{name: "unknown augmentation without z", build: func(a *asm) { a.cie(cieSpec{version: 1, aug: "Q"}) },
			want: Unsupported, where: "CIE augmentation"},
		{name: "augmentation length past the record", build: func(a *asm) {
			a.begin()
			a.cieID().u8(1).str("zR").uleb(1).sleb(-8).u8(16).uleb(0x1000).u8(0).end()
		}, want: Truncated, where: "CIE augmentation length"},
		{name: "augmentation data shorter than its letters",
			build: func(a *asm) { a.cie(cieSpec{version: 1, aug: "zPR", augData: []byte{0, 1}}) },
			want:  Truncated, where: "CIE augmentation"},
		{name: "augmentation data a byte shorter than its letters",
			build: func(a *asm) { a.cie(cieSpec{version: 1, aug: "zRL", augData: []byte{0}}) },
			want:  Truncated, where: "CIE augmentation"},
		{name: "unterminated augmentation",
			build: func(a *asm) { a.begin(); a.cieID().u8(1, 'z', 'R').end() },
			want:  Truncated, where: "CIE"},
		{name: "return address register",
			build: func(a *asm) { a.begin(); a.cieID().u8(3).str("").uleb(1).sleb(-8).uleb(1 << 20).end() },
			want:  BadRecord, where: "CIE return address register"},
		{name: "address size", build: func(a *asm) {
			a.begin()
			a.cieID().u8(4).str("").u8(3,
				0).uleb(1).sleb(-8).uleb(16).end()
		}, want: Unsupported, where: "CIE address size"},
		{name: "FDE of an unusable CIE", build: func(a *asm) {
			c := a.cie(cieSpec{version: 9})
			a.simpleFDE(c)
		}, want: Unsupported, where: "FDE"},
		{name: "FDE that wraps", build: func(a *asm) {
			c := a.simpleCIE()
			a.begin()
			a.ciePtr(c).u64(^uint64(0) - 8).u64(16).end()
		}, want: BadRecord, where: "FDE range"},
		{name: "FDE range cut", build: func(a *asm) {
			c := a.simpleCIE()
			a.begin()
			a.ciePtr(c).u64(0x9000).u32(16).end()
		}, want: Truncated, where: "FDE range"},
		{name: "FDE augmentation past the record", build: func(a *asm) {
			c := a.cie(cieSpec{version: 1, aug: "z"})
			a.begin()
			a.ciePtr(c).u64(0x9000).u64(16).uleb(99).end()
		}, want: Truncated, where: "FDE augmentation length"},
		{name: "overlong LEB128 in a CIE", build: func(a *asm) {
			a.begin()
			a.cieID().u8(1).str("")
			for i := 0; i < 12; i++ {
				a.u8(0x80)
			}
			a.u8(1, 0x78, 16).end()
		}, want: Truncated, where: "CIE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a asm
			if c.before {
				good(&a)
				c.build(&a)
			} else {
				c.build(&a)
				good(&a)
			}
			tab, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b})
			f, why := tab.Find(fnLo)
			expect.True(t, why == None && f.Hi == fnHi, "the good FDE is lost: %v %+v", why, f)
			checkProblem(t, err, c.where, c.want)
		})
	}
}

func checkProblem(t *testing.T, err error, where string, want Reason) {
	t.Helper()
	var le *LoadError
	must.True(t, errors.As(err, &le), "error = %v", err)
	for _, p := range le.Problems {
		if p.Structure == where && p.Reason == want && strings.Contains(p.Error(), p.Section) {
			return
		}
	}
	t.Errorf("no %q problem with reason %v in %v", where, want, le.Problems)
}

// TestTruncatedSection cuts a section at every byte: nothing but typed errors,
// and what lies before the cut is kept.
func TestTruncatedSection(t *testing.T) {
	for _, a := range []asm{{}, {wide: true}, {debug: true}, {debug: true, wide: true}} {
		a.simpleFDE(a.simpleCIE())
		whole := len(a.b)
		a.simpleFDE(a.simpleCIE())
		for n := range a.b {
			s := Sections{Arch: context.ArchAMD64, EHFrame: a.b[:n:n]}
			if a.debug {
				s = Sections{Arch: context.ArchAMD64, DebugFrame: a.b[:n:n]}
			}
			tab, err := Load(s)
			_, why := tab.Find(fnLo)
			must.True(t, (why == None) == (n >= whole), "%+v cut at %d: %v %v", a.wide, n, why, err)
		}
	}
}

func TestTerminatorAndHeader(t *testing.T) {
	var a asm
	cie := a.simpleCIE()
	first := uint64(len(a.b))
	a.simpleFDE(cie)
	a.begin()
	a.ciePtr(cie).u64(0x8000).u64(16).end() // the header misses it
	a.u32(0)
	hidden := uint64(len(a.b))
	a.begin()
	a.ciePtr(cie).u64(0x9000).u64(16).end()
	const ehAddr, hdrAddr = 0x2000, 0x1f00
	s := Sections{Arch: context.ArchAMD64, EHFrame: a.b, EHFrameAddr: ehAddr}
	_, why := mustLoad(t, s).Find(0x9000)
	must.True(t, why == NoInfo, "a record behind the terminator was found without a header: %v", why)
	var h asm
	h.u8(1, 0x1b, 0x03, 0x3b).u32(ehAddr - hdrAddr - 4).u32(3)
	h.u32(7).u32(uint32(ehAddr + first - hdrAddr)) // the start is not its FDE's
	for range 2 {                                  // the second one adds nothing
		h.u32(0x9000 - hdrAddr).u32(uint32(ehAddr + hidden - hdrAddr))
	}
	s.EHFrameHdr, s.EHFrameHdrAddr = h.b, hdrAddr
	tab := mustLoad(t, s)
	for _, pc := range []uint64{fnLo, 0x8000, 0x9000} {
		_, why := tab.Find(pc)
		expect.True(t, why == None, "Find(%#x) = %v", pc, why)
	}
	st := tab.Stats()
	expect.True(t, st.HeaderOnly == 1 && st.HeaderMiss == 1 && st.HeaderWrong == 1 && st.HeaderSize == 3 &&
		st.FDEs == 3 && st.CIEs == 1, "%+v", st)
}

// TestHeaderIntoRecord: a row of the header points to bytes of an FDE that look like another FDE.
func TestHeaderIntoRecord(t *testing.T) {
	const ehAddr, hdrAddr = 0x2000, 0x1f00
	var a asm
	cie := a.simpleCIE()
	outer := len(a.b)
	a.simpleFDE(cie)
	inner := len(a.b)
	a.begin()
	a.ciePtr(cie).u64(0x9000).u64(16).end()
	length := binary.LittleEndian.Uint32(a.b[outer:])
	binary.LittleEndian.PutUint32(a.b[outer:], length+uint32(len(a.b)-inner))
	var h asm
	h.u8(1, 0x1b, 0x03, 0x3b).u32(ehAddr - hdrAddr - 4).u32(1)
	h.u32(0x9000 - hdrAddr).u32(uint32(ehAddr + inner - hdrAddr))
	tab, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b, EHFrameAddr: ehAddr,
		EHFrameHdr: h.b, EHFrameHdrAddr: hdrAddr})
	if _, why := tab.Find(0x9000); why != NoInfo || tab.Stats().HeaderOnly != 0 || err == nil {
		t.Errorf("%v, %+v, %v", why, tab.Stats(), err)
	}
}

func mustLoad(t testing.TB, s Sections) *Table {
	t.Helper()
	return must.Get(Load(s))(t)
}

// TestHeaderDamage: a damaged header loses nothing of .eh_frame.
func TestHeaderDamage(t *testing.T) {
	eh := ehFrame()
	for _, c := range []struct {
		name string
		hdr  *asm
		want Reason // None: no problem
	}{
		{"three bytes", new(asm).u8(1, 0x1b, 3), Truncated},
		{"version 2", new(asm).u8(2, 0x1b, 3, 0x3b).u32(0).u32(0), Unsupported},
		{"no table", new(asm).u8(1, 0x1b, 0xff, 0xff).u32(0), None},
		{"undefined pointer encoding", new(asm).u8(1, 0x0f, 3, 0x3b).u32(0).u32(0), BadEncoding},
		{"pointer cut", new(asm).u8(1, 0x1b, 3, 0x3b).u16(0), Truncated},
		{"count cut", new(asm).u8(1, 0x1b, 3, 0x3b).u32(0).u16(0), Truncated},
		{"count lies", new(asm).u8(1, 0x1b, 3, 0x3b).u32(0).u32(0xffffffff).u32(1).u32(2), Truncated},
		{"table of an undefined encoding", new(asm).u8(1, 0x1b, 3, 0x0f).u32(0).u32(1).u64(0), BadEncoding},
		{"entry outside .eh_frame",
			new(asm).u8(1, 0x1b, 3, 0x3b).u32(0).u32(1).u32(0).u32(0x7fffffff), BadRecord},
		{"entry into the middle of a record",
			new(asm).u8(1, 0x1b, 3, 0x3b).u32(0).u32(1).u32(0).u32(0x4004), BadRecord},
		{"entry at a CIE", new(asm).u8(1, 0x1b, 3, 0x3b).u32(0).u32(1).u32(0).u32(0x4000), BadRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: eh,
				EHFrameAddr: 0x4000, EHFrameHdr: c.hdr.b})
			_, why := tab.Find(fnLo)
			expect.True(t, why == None, "FDE lost: %v", why)
			if c.want == None {
				expect.Equal(t, err, nil)
				return
			}
			var le *LoadError
			must.True(t, errors.As(err, &le), "%v", err)
			p := le.Problems[len(le.Problems)-1] // the table's own after its entries'
			expect.True(t, p.Reason == c.want && p.Section == ".eh_frame_hdr", "got %v, want %v", p, c.want)
		})
	}
}

// TestOverlap: of FDEs that share bytes, the one that starts last applies, the
// outer one around it, and .eh_frame before .debug_frame.
func TestOverlap(t *testing.T) {
	var a asm
	cie := a.simpleCIE()
	add := func(a *asm, cie int, lo, hi uint64) { a.begin(); a.ciePtr(cie).u64(lo).u64(hi - lo).end() }
	add(&a, cie, 100, 200)
	add(&a, cie, 120, 130)
	add(&a, cie, 125, 140)
	add(&a, cie, 190, 210)
	add(&a, cie, 300, 300) // covers nothing
	d := asm{debug: true}
	dc := d.simpleCIE()
	add(&d, dc, 100, 250)
	tab := mustLoad(t, Sections{Arch: context.ArchAMD64, EHFrame: a.b, DebugFrame: d.b})
	for _, c := range []struct{ pc, lo, hi uint64 }{
		{99, 0, 0}, {100, 100, 200}, {119, 100, 200}, {120, 120, 130}, {124, 120, 130},
		{125, 125, 140}, {139, 125, 140},
		{140, 100, 200}, {189, 100, 200}, {190, 190, 210}, {209, 190, 210}, {210, 100, 250},
		{249, 100, 250}, {250, 0, 0}, {300, 0, 0},
	} {
		f, why := tab.Find(c.pc)
		expect.True(t, f.Lo == c.lo && f.Hi == c.hi && (why == None) == (c.hi != 0),
			"Find(%d) = [%d,%d) %v, want [%d,%d)", c.pc, f.Lo, f.Hi, why, c.lo, c.hi)
	}
	st := tab.Stats()
	expect.True(t, st.Empty == 1 && st.Overlapping != 0 && st.DebugFDEs == 1, "%+v", st)
	n := 0
	tab.Each(func(FDE) bool { n++; return true })
	expect.True(t, n == 5 && tab.Len() == 5, "Each gave %d, Len %d", n, tab.Len())
}

// TestRemovedFunction: in .eh_frame, a start of 0 is that of a function that a linker has removed, also in an
// encoding that is relative to the field (libgcc, unwind-pe.h and unwind-dw2-fde.c).
func TestRemovedFunction(t *testing.T) {
	for _, enc := range []uint8{elfasm.Absolute, elfasm.Relative} {
		f := elfasm.Frames{Addr: 0x4000}
		c := elfasm.AMD64CIE()
		c.Encoding = enc
		f.CIE(&c)
		removed := uint64(0)
		if enc == elfasm.Relative {
			removed = f.Addr + uint64(len(f.Bytes())) - 4 + 8 // the field itself
		}
		f.FDE(&c, removed, 0x8000)
		f.FDE(&c, 0x6000, 0x10)
		s := Sections{Arch: context.ArchAMD64, EHFrame: f.Bytes(), EHFrameAddr: f.Addr}
		tab := mustLoad(t, s)
		checkFind(t, "after Load", tab, [][2]uint64{{0x6000, 0x6010}}, 0x5000)
		checkFind(t, "after Load", tab, [][2]uint64{{0x6000, 0x6010}}, 0x6001)
		expect.True(t, tab.Stats().Empty == 1 && tab.Len() == 1, "%+v", tab.Stats())
	}
}

// TestFindEverywhere compares Find with a plain search, at and around every
// border, over FDEs that lie unevenly.
func TestFindEverywhere(t *testing.T) {
	for name, starts := range map[string][]uint64{
		"one":      {0x1000},
		"even":     {0x1000, 0x1010, 0x1020, 0x1030},
		"uneven":   {2, 3, 0x10, 0x11, 0x4000, 0x4001, 1 << 40, 1<<40 + 8, 1<<63 + 5},
		"high end": {^uint64(0) - 64, ^uint64(0) - 17},
	} {
		var a asm
		cie := a.simpleCIE()
		sizes := []uint64{1, 8, 16}
		var want [][2]uint64
		for i, lo := range starts {
			hi := lo + sizes[i%3]
			if i+1 < len(starts) {
				hi = min(hi, starts[i+1])
			}
			a.begin()
			a.ciePtr(cie).u64(lo).u64(hi - lo).end()
			want = append(want, [2]uint64{lo, hi})
		}
		tab := mustLoad(t, Sections{Arch: context.ArchAMD64, EHFrame: a.b})
		for _, r := range want {
			for d := uint64(0); d < 40; d++ {
				for _, pc := range []uint64{r[0] + d - 20, r[1] + d - 20} {
					checkFind(t, name, tab, want, pc)
				}
			}
		}
	}
}

func checkFind(t *testing.T, name string, tab *Table, want [][2]uint64, pc uint64) {
	t.Helper()
	f, why := tab.Find(pc)
	for _, r := range want {
		if pc >= r[0] && pc < r[1] {
			expect.True(t, why == None && f.Lo == r[0] && f.Hi == r[1],
				"%s: Find(%#x) = %v [%#x,%#x), want %#x", name, pc, why, f.Lo, f.Hi, r)
			return
		}
	}
	expect.True(t, why == NoInfo, "%s: Find(%#x) = %v [%#x,%#x), want nothing", name, pc, why, f.Lo, f.Hi)
}

// TestNoAllocations: look-up, row and expression run while a thread is
// suspended.
func TestNoAllocations(t *testing.T) {
	tab := table(t, context.ArchARM64,
		ehFrame(DW_CFA_remember_state, DW_CFA_offset|3, 2, DW_CFA_expression, 6, 2, DW_OP_breg0+7, 8,
			DW_CFA_restore_state, DW_CFA_advance_loc|2, DW_CFA_offset|3, 2))
	var m Machine
	var row Row
	env := exprEnv()
	plt := []byte{DW_OP_breg0 + 7, 8, DW_OP_breg0 + 16, 0, DW_OP_lit0 + 15, DW_OP_and, DW_OP_lit0 + 11,
		DW_OP_ge, DW_OP_lit0 + 3, DW_OP_shl, DW_OP_plus}
	for name, fn := range map[string]func(){
		"Find":     func() { tab.Find(fnLo + 1) },
		"Row":      func() { m.Row(tab, fnLo+4, &row) },
		"Row miss": func() { m.Row(tab, 1, &row) },
		"Eval":     func() { Eval(plt, env) },
		"Eval bad": func() { Eval(plt[:1], env) },
	} {
		expect.Equal(t, testing.AllocsPerRun(200, fn), 0, "%s: allocations", name)
	}
}

// TestDiscarded: for discarded functions, linkers leave records in .debug_frame that begin at 0. Such a
// record is dropped if it overlaps another one.
func TestDiscarded(t *testing.T) {
	d := asm{debug: true}
	cie := d.simpleCIE()
	for _, r := range [][2]uint64{{0, 0x2000}, {0x1100, 0x100}, {0, 0x10}, {0x1400, 0x100}} {
		d.begin()
		d.ciePtr(cie).u64(r[0]).u64(r[1]).end()
	}
	tab := mustLoad(t, Sections{Arch: context.ArchAMD64, DebugFrame: d.b})
	for pc, hi := range map[uint64]uint64{8: 0x10, 0x1080: 0, 0x1180: 0x1200, 0x1300: 0, 0x1480: 0x1500} {
		f, _ := tab.Find(pc)
		expect.Equal(t, f.Hi, hi, "end of the record at %#x", pc)
	}
	expect.Equal(t, tab.Stats().DebugFDEs, 3, "records")
}

package fuzz

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const ehAddr = 0x2000

// frameSeed is an .eh_frame with a CIE "zR" and one FDE of [0x1000, 0x1040).
func frameSeed(program ...byte) []byte {
	cie := []byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1}
	fde := []byte{byte(len(cie) + 8), 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0}
	fde = append(fde, program...)
	out := append([]byte{byte(len(cie)), 0, 0, 0}, cie...)
	out = append(append(out, byte(len(fde)), 0, 0, 0), fde...)
	return append(out, 0, 0, 0, 0)
}

// encodedSeed returns an .eh_frame. Its CIE has a personality, an area for language data, and
// pointers of encoding enc. Each FDE covers a range [begin, end) of 32 bits. With a relative
// encoding, the FDEs cover other addresses, which makes no difference to the fuzzer.
func encodedSeed(enc byte, ranges ...[2]uint32) []byte {
	cie := []byte{0, 0, 0, 0, 1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x9b, 1, 2, 3, 4, 0xff,
		enc, 0x0c, 7, 8, 0x90, 1, 0, 0}
	out := append([]byte{byte(len(cie)), 0, 0, 0}, cie...)
	for _, r := range ranges {
		out = binary.LittleEndian.AppendUint32(append(out, 17, 0, 0, 0), uint32(len(out)+4))
		out = binary.LittleEndian.AppendUint32(out, r[0])
		out = binary.LittleEndian.AppendUint32(out, r[1]-r[0])
		out = append(out, 0, 0x44, 0x0e, 16, 0)
	}
	return append(out, 0, 0, 0, 0)
}

var programSeeds = [][]byte{
	{},
	{0x41, 0x0e, 0x10, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x83, 3, 0x44, 0x0b, 0xc6},
	{0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
	{0x10, 3, 2, 0x77, 8, 0x16, 6, 1, 0x30, 0x2e, 0x90, 1, 0x2f, 12, 2},
	{0x2d, 0x42, 0x2d, 0x09, 16, 2, 0x07, 16, 0x08, 3, 0x14, 12, 2, 0x15, 12, 0x7f, 0x11, 5,
		0x7e, 0x12, 7, 0x7f, 0x13, 0x7e},
	{0x01, 4, 0x10, 0, 0, 0, 0, 0, 0, 0x02, 4, 0x03, 1, 0, 0x04, 2, 0, 0, 0, 0x1d, 1, 0, 0, 0, 0, 0, 0, 0},
}

// FuzzEHFrame reads any bytes as .eh_frame and .debug_frame of both
// architectures. FDEs are sorted and disjoint to Find, rows lie in their FDE
// and hold their pc, and Rows and Row agree.
func FuzzEHFrame(f *testing.F) {
	for _, p := range programSeeds {
		f.Add(frameSeed(p...), uint64(0x1000))
	}
	for _, enc := range []byte{0x03, 0x0b, 0x1b, 0x2b, 0x3b, 0x4b, 0x50, 0x9b, 0x01, 0x09, 0xff} {
		f.Add(encodedSeed(enc, [2]uint32{0x1000, 0x1040}, [2]uint32{0x1040, 0x1060}), uint64(0x1000))
	}
	f.Add(encodedSeed(3, [2]uint32{0x1000, 0x1100}, [2]uint32{0x1010, 0x1020}, [2]uint32{0x1018, 0x1200},
		[2]uint32{0x1000, 0x1000}), uint64(0x1019)) // over each other
	for _, s := range sorted(seedCFI(f)) {
		f.Add(s.EHFrame, ehAddr-s.EHFrameAddr+0x300)
		f.Add(s.DebugFrame, s.TextAddr)
	}
	for _, b := range sorted(seedFiles(f, "*.debug_frame")) {
		f.Add(b, uint64(0x401000))
	}
	if data, addr, ok := hostFrames(4096); ok {
		f.Add(data, ehAddr-addr+0x27000)
	}
	f.Fuzz(func(t *testing.T, data []byte, pc uint64) {
		if len(data) > 1<<16 {
			return
		}
		data = data[:len(data):len(data)] // a read past the end is a panic
		for _, arch := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
			exercise(t, cfi.Sections{Arch: arch, EHFrame: data, EHFrameAddr: ehAddr}, pc)
			exercise(t, cfi.Sections{Arch: arch, DebugFrame: data}, pc)
		}
	})
}

// FuzzEHFrameHdr reads any bytes as .eh_frame_hdr over a good .eh_frame: the
// good FDE is never lost.
func FuzzEHFrameHdr(f *testing.F) {
	eh := frameSeed(programSeeds[1]...)
	f.Add([]byte{1, 0x1b, 3, 0x3b, 0xfc, 0x0f, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 22, 16, 0, 0})
	f.Add([]byte{1, 0x1b, 0xff, 0xff, 0, 0, 0, 0})
	f.Add([]byte{1, 0x00, 0x01, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x80, 0x20})
	for _, s := range sorted(seedCFI(f)) {
		f.Add(s.EHFrameHdr)
	}
	f.Fuzz(func(t *testing.T, hdr []byte) {
		s := cfi.Sections{Arch: context.ArchAMD64, EHFrame: eh, EHFrameAddr: ehAddr,
			EHFrameHdr: hdr, EHFrameHdrAddr: 0x1000}
		tab, _ := cfi.Load(s)
		fde, why := tab.Find(0x1001)
		must.True(t, why == cfi.None && fde.Lo == 0x1000 && fde.Hi == 0x1040, "FDE lost: %v %+v", why, fde)
		exercise(t, s, 0x1001)
	})
}

// exercise loads the sections and holds the table to its invariants.
func exercise(t *testing.T, s cfi.Sections, pc uint64) {
	tab, err := cfi.Load(s)
	if tab == nil {
		t.Fatal("no table", err)
	}
	if n := len(s.EHFrame) + len(s.DebugFrame); tab.Len() > n {
		t.Fatalf("%d FDEs in %d bytes", tab.Len(), n)
	}
	var m cfi.Machine
	var row cfi.Row
	checkPC(t, tab, &m, &row, pc)
	last, count := uint64(0), 0
	tab.Each(func(f cfi.FDE) bool {
		must.True(t, f.Lo >= last && f.Hi > f.Lo, "FDE [%#x,%#x) after %#x", f.Lo, f.Hi, last)
		last = f.Lo
		for _, at := range []uint64{f.Lo, f.Hi - 1, f.Lo + (f.Hi-f.Lo)/2} {
			if _, why := tab.Find(at); why != cfi.None {
				t.Fatalf("pc %#x of an FDE is not found", at)
			}
			checkPC(t, tab, &m, &row, at)
		}
		checkRows(t, tab, &f)
		count++
		return count < 64
	})
}

func checkPC(t *testing.T, tab *cfi.Table, m *cfi.Machine, row *cfi.Row, pc uint64) {
	why := m.Row(tab, pc, row)
	var fresh cfi.Machine
	var again cfi.Row
	if why2 := fresh.Row(tab, pc, &again); why2 != why || !sameRow(row, &again) {
		t.Fatalf("a used machine says %v %+v, a new one %v %+v", why, *row, why2, again)
	}
	if why != cfi.None {
		must.True(t, row.CFA.Kind == cfi.Unspecified && row.Used == [2]uint64{},
			"a refused row has rules: %v", why)
		return
	}
	must.True(t, row.FDE.Lo <= row.Lo && row.Lo <= pc && pc < row.Hi && row.Hi <= row.FDE.Hi,
		"row [%#x,%#x) for pc %#x in FDE [%#x,%#x)", row.Lo, row.Hi, pc, row.FDE.Lo, row.FDE.Hi)
	for c := range row.Regs {
		if used := row.Used[c>>6]>>(c&63)&1 != 0; used != (row.Regs[c].Kind != cfi.Unspecified) {
			t.Fatalf("column %d: used %v, %v", c, used, row.Regs[c].Kind)
		}
	}
}

func checkRows(t *testing.T, tab *cfi.Table, f *cfi.FDE) {
	var m, one cfi.Machine
	var row, other cfi.Row
	next, n := f.Lo, 0
	why := m.Rows(tab, f, &row, func(r *cfi.Row) bool {
		must.True(t, r.Lo == next && r.Hi > r.Lo && r.Hi <= f.Hi,
			"row [%#x,%#x) where %#x is next", r.Lo, r.Hi, next)
		next = r.Hi
		if why := one.Row(tab, r.Lo, &other); why == cfi.None && other.FDE == r.FDE && !sameRow(r, &other) {
			t.Fatalf("Rows and Row differ at %#x:\n%+v\n%+v", r.Lo, *r, other)
		}
		n++
		return n < 32
	})
	if why == cfi.None && next != f.Hi && n < 32 {
		t.Fatalf("rows end at %#x, the FDE at %#x", next, f.Hi)
	}
}

// sameRow compares without reflection, which would take most of a target's time.
func sameRow(a, b *cfi.Row) bool {
	same := a.FDE == b.FDE && a.Lo == b.Lo && a.Hi == b.Hi && a.Used == b.Used && a.RASign == b.RASign &&
		a.BKey == b.BKey && sameRule(&a.CFA, &b.CFA)
	for c := range a.Regs {
		same = same && sameRule(&a.Regs[c], &b.Regs[c])
	}
	return same
}

func sameRule(a, b *cfi.Rule) bool {
	return a.Kind == b.Kind && a.Reg == b.Reg && a.Off == b.Off && bytes.Equal(a.Expr, b.Expr)
}

// FuzzCFIProgram runs any bytes as the program of one FDE.
func FuzzCFIProgram(f *testing.F) {
	for _, p := range programSeeds {
		f.Add(p)
	}
	eachProgram(f, func(p []byte) { f.Add(p) })
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 200 {
			return // the seed's length field has one byte
		}
		for _, arch := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
			exercise(t, cfi.Sections{Arch: arch, EHFrame: frameSeed(program...), EHFrameAddr: ehAddr}, 0x1020)
		}
	})
}

// FuzzExpression evaluates any bytes: an answer or a reason, the same twice.
func FuzzExpression(f *testing.F) {
	for _, e := range [][]byte{
		{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
		{0x77, 0xa0, 1, 6},
		{0x2f, 0xfd, 0xff},
		{0x35, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff, 0x37},
		{0x0a, 0, 0x10, 0x94, 4, 0x12, 0x1b, 0x16, 0x15, 1, 0x17},
	} {
		f.Add(e, uint64(0x1000), true)
	}
	for _, constant := range [][]byte{{0x08, 200}, {0x09, 200}, {0x0b, 1, 200},
		{0x0c, 1, 2, 3, 200}, {0x0d, 1, 2, 3, 200},
		{0x0e, 1, 2, 3, 4, 5, 6, 7, 200}, {0x0f, 1, 2, 3, 4, 5, 6, 7, 200}, {0x10, 0x90, 1}, {0x11, 0x7f}} {
		for op := byte(0x12); op <= 0x2e; op++ { // every operation on constants of every size
			f.Add(append(append(append([]byte{}, constant...), 0x35), op), uint64(0x1000), true)
		}
	}
	eachProgram(f, func(p []byte) {
		if e := firstExpression(p); e != nil {
			f.Add(e, uint64(0x1000), false)
		}
	})
	data := make([]byte, 64)
	for i := range data {
		data[i] = byte(i * 7)
	}
	mem := memory.New(memory.Run{Addr: 0x1000, Data: data})
	f.Fuzz(func(t *testing.T, expr []byte, cfa uint64, push bool) {
		env := cfi.ExprEnv{Known: 1<<17 - 1, CFA: cfa, PushCFA: push, Mem: mem}
		for i := range env.Regs {
			env.Regs[i] = 0x1000 + uint64(i)*4
		}
		a, why := cfi.Eval(expr, &env)
		b, why2 := cfi.Eval(expr, &env)
		if a != b || why != why2 || why != cfi.None && a != 0 {
			t.Fatalf("%#x %v, then %#x %v", a, why, b, why2)
		}
	})
}

// searchTable is an .eh_frame_hdr at hdrAt of (start, offset of its FDE).
func searchTable(pairs ...[2]uint32) []byte {
	h := []byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0}
	h = binary.LittleEndian.AppendUint32(h, uint32(len(pairs)))
	for _, p := range pairs {
		h = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(h, p[0]-hdrAt),
			ehAddr-hdrAt+p[1])
	}
	return h
}

const hdrAt = 0x1800

// FuzzOpened compares the results of a table that was opened (cfi.Open) and one that was read
// at once (cfi.Load). They are equal from the start if the header refers only to FDEs of the
// section, and no FDEs overlap. In any case, they are equal after Complete.
func FuzzOpened(f *testing.F) {
	eh := frameSeed(programSeeds[1]...)
	f.Add(searchTable([2]uint32{0x1000, 22}), eh, uint64(0x1001), uint64(hdrAt))
	f.Add(searchTable(), eh, uint64(0x1001), uint64(hdrAt))
	two := encodedSeed(0x03, [2]uint32{0x1000, 0x1040}, [2]uint32{0x1040, 0x1060})
	f.Add(searchTable([2]uint32{0x1000, 32}, [2]uint32{0x1040, 53}), two, uint64(0x1041), uint64(hdrAt))
	// Not sorted, and one start twice.
	f.Add(searchTable([2]uint32{0x1040, 53}, [2]uint32{0x1000, 32}), two, uint64(0x1041), uint64(hdrAt))
	f.Add(searchTable([2]uint32{0x1000, 53}, [2]uint32{0x1000, 32}), two, uint64(0x1000), uint64(hdrAt))
	f.Add(searchTable([2]uint32{0x1000, 0xfffffff0}, [2]uint32{0x1040, 1}), two,
		uint64(0x1041), uint64(hdrAt))
	for _, s := range sorted(seedCFI(f)) {
		f.Add(s.EHFrameHdr, s.EHFrame, s.TextAddr+0x40, s.EHFrameHdrAddr-s.EHFrameAddr+ehAddr)
	}
	f.Fuzz(func(t *testing.T, hdr, eh []byte, pc, hdrAddr uint64) {
		if len(hdr)+len(eh) > 1<<16 {
			return
		}
		eh, hdr = eh[:len(eh):len(eh)], hdr[:len(hdr):len(hdr)] // a read past the end is a panic
		for _, arch := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
			s := cfi.Sections{Arch: arch, EHFrame: eh, EHFrameAddr: ehAddr,
				EHFrameHdr: hdr, EHFrameHdrAddr: hdrAddr}
			all, err := cfi.Load(s)
			opened := cfi.Open(s)
			st := all.Stats()
			o := openedPair{all: all, opened: opened,
				strict: opened.Read() || st.Overlapping == 0 && st.HeaderWrong == 0 && !blamesHeader(err)}
			o.everywhere(t, pc)
			opened.Complete()
			o.strict = true
			o.everywhere(t, pc)
		}
	})
}

// blamesHeader reports whether an entry of the header points at no FDE.
func blamesHeader(err error) bool {
	le, _ := err.(*cfi.LoadError)
	if le == nil {
		return false
	}
	for _, p := range le.Problems {
		if p.Structure == "table entry" {
			return true
		}
	}
	return le.Count > len(le.Problems)
}

type openedPair struct {
	all, opened *cfi.Table
	strict      bool
	m           [2]cfi.Machine
	row         [2]cfi.Row
}

// everywhere asks for pc and for the edges of some functions.
func (o *openedPair) everywhere(t *testing.T, pc uint64) {
	o.at(t, pc)
	n := 0
	o.all.Each(func(f cfi.FDE) bool {
		for _, pc := range []uint64{f.Lo - 1, f.Lo, f.Hi - 1, f.Hi} {
			o.at(t, pc)
		}
		n++
		return n < 16
	})
}

func (o *openedPair) at(t *testing.T, pc uint64) {
	a, why := o.all.Find(pc)
	b, openedWhy := o.opened.Find(pc)
	if openedWhy == cfi.None && (pc < b.Lo || b.Hi <= pc) {
		t.Fatalf("%#x: %+v does not cover it", pc, b)
	}
	if o.strict && (why != openedWhy || a != b) {
		t.Fatalf("%#x: %v %+v of all, %v %+v of the opened", pc, why, a, openedWhy, b)
	}
	rowWhy, openedWhy := o.m[0].Row(o.all, pc, &o.row[0]), o.m[1].Row(o.opened, pc, &o.row[1])
	if o.strict && (rowWhy != openedWhy || !sameRow(&o.row[0], &o.row[1])) {
		t.Fatalf("%#x: row %v %+v of all, %v %+v of the opened", pc, rowWhy,
			o.row[0].FDE, openedWhy, o.row[1].FDE)
	}
}

package cfi_test

import (
	"encoding/binary"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// firstModules are images as linkers make them: of the hosts' C and C++ libraries and of
// .NET runtimes, of both architectures.
func firstModules(t *testing.T) (paths []string) {
	for _, pattern := range []string{
		hostLibc, "/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/aarch64-linux-gnu/lib/libc.so.6",
		"../.cache/dotnet-9.*/package/dist/*.so",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Logf("SKIPPED-CHECK: no %s", pattern)
		}
		paths = append(paths, found...)
	}
	return paths
}

// TestFirst: a table that was opened gives the same results as one that was loaded: at the
// first byte, the last, and one between of every function, and at bytes that no function
// covers. Afterwards, its records are still unread.
func TestFirst(t *testing.T) {
	for _, path := range firstModules(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := elf.Open(path)
			if err != nil {
				t.Skip("SKIPPED-CHECK: " + err.Error())
			}
			s := module.CFISections(f, f.CFISections())
			all, _ := cfi.Load(s)
			opened := cfi.Open(s)
			if len(s.EHFrameHdr) == 0 || len(s.DebugFrame) != 0 {
				return // all is read at once
			}
			must.True(t, !opened.Read(), "all was read when it was opened")
			got := opened.Entries()
			expect.True(t, got == all.Len(), "%d entries, %d FDEs", got, all.Len())
			n, gaps, last := sameAnswers(t, all, opened)
			expect.True(t, !opened.Read(), "all was read for its answers")
			t.Logf("%d FDEs, %d gaps, %d rows", n, gaps, last)
			expect.True(t, opened.Complete() == nil && opened.Read() && opened.Stats() == all.Stats(),
				"completed: %+v, want %+v", opened.Stats(), all.Stats())
			sameAnswers(t, all, opened)
		})
	}
}

// maxGaps limits the addresses without FDE, because each is searched for in all records.
const maxGaps = 8

func sameAnswers(t *testing.T, all, opened *cfi.Table) (fdes, gaps, rows int) {
	t.Helper()
	var ma, mo cfi.Machine
	var ra, ro cfi.Row
	all.Each(func(f cfi.FDE) bool {
		pcs := []uint64{f.Lo, f.Hi - 1}
		if _, why := all.Find(f.Hi); why != cfi.None && gaps < maxGaps {
			pcs = append(pcs, f.Hi)
			gaps++
		}
		for _, pc := range pcs {
			a, b := find(all, pc), find(opened, pc)
			must.True(t, a == b, "%#x: %+v of all, %+v of the opened", pc, a, b)
		}
		pc := f.Lo + (f.Hi-f.Lo)/2
		if a, b := ma.Row(all, pc, &ra), mo.Row(opened, pc, &ro); a != b || !equalRows(&ra, &ro) {
			t.Fatalf("%#x: row %v %+v of all, %v %+v of the opened", pc, a, ra.FDE, b, ro.FDE)
		}
		if fdes++; ra.Hi > ra.Lo {
			rows++
		}
		return true
	})
	return fdes, gaps, rows
}

type answer struct {
	f   cfi.FDE
	why cfi.Reason
}

func find(t *cfi.Table, pc uint64) answer {
	f, why := t.Find(pc)
	return answer{f, why}
}

func equalRows(a, b *cfi.Row) bool {
	return a.FDE == b.FDE && a.Lo == b.Lo && a.Hi == b.Hi && a.Used == b.Used && a.RASign == b.RASign &&
		a.BKey == b.BKey &&
		equalRules(a.CFA, b.CFA) && slices.EqualFunc(a.Regs[:], b.Regs[:], equalRules)
}

func equalRules(a, b cfi.Rule) bool {
	return a.Kind == b.Kind && a.Reg == b.Reg && a.Off == b.Off && slices.Equal(a.Expr, b.Expr)
}

// pairsAt are the addresses of the hand-made header and its .eh_frame.
const (
	firstHdr = 0x1000
	firstEH  = 0x2000
)

// handMade returns an .eh_frame with a CIE and FDEs of ranges, and the offset of each FDE.
func handMade(ranges ...[2]uint64) (eh []byte, offs []uint32) {
	record := func(b ...byte) {
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		eh = append(binary.LittleEndian.AppendUint32(eh, uint32(len(b))), b...)
	}
	record(0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1)
	for _, r := range ranges {
		offs = append(offs, uint32(len(eh)))
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(eh)+4))
		b = binary.LittleEndian.AppendUint64(b, r[0])
		record(binary.LittleEndian.AppendUint64(b, r[1]-r[0])...)
	}
	return append(eh, 0, 0, 0, 0), offs
}

// pair is one row of a search table: the start it claims and its FDE's offset.
type pair struct {
	lo  uint64
	off uint32
}

func header(count uint32, pairs ...pair) []byte {
	h := []byte{1, 0x1b, 3, 0x3b, 0xfc, 0x0f, 0, 0}
	h = binary.LittleEndian.AppendUint32(h, count)
	for _, p := range pairs {
		h = binary.LittleEndian.AppendUint32(h, uint32(p.lo-firstHdr))
		h = binary.LittleEndian.AppendUint32(h, firstEH-firstHdr+p.off)
	}
	return h
}

// TestFirstDamaged: whatever the header contains, the results are those of all records. A
// useless header is ignored.
func TestFirstDamaged(t *testing.T) {
	a, b, c := [2]uint64{0x5000, 0x5100}, [2]uint64{0x5100, 0x5180}, [2]uint64{0x6000, 0x6040}
	inner, twin := [2]uint64{0x5010, 0x5020}, [2]uint64{0x5000, 0x5080}
	third := [2]uint64{0x5000, 0x50c0}
	eh, o := handMade(a, b, c)
	over, ov := handMade(a, b, c, inner)
	inside, _ := handMade(inner, a, b, c)
	twins, tw := handMade(twin, a, third, c) // three that start together
	good := []pair{{a[0], o[0]}, {b[0], o[1]}, {c[0], o[2]}}
	edit := func(at int, v byte) []byte {
		h := header(3, good...)
		h[at] = v
		return h
	}
	for _, c := range []struct {
		name string
		eh   []byte
		hdr  []byte
		read bool // all is read at once
	}{
		{"good", eh, header(3, good...), false},
		{"not sorted", eh, header(3, good[2], good[0], good[1]), false},
		{"sorted the other way", eh, header(3, good[2], good[1], good[0]), false},
		{"an FDE is missing", eh, header(2, good[0], good[2]), false},
		{"all lead to one FDE", eh, header(3, pair{a[0], o[1]}, pair{b[0], o[1]}, pair{c[0], o[1]}), false},
		{"the first FDE for the second's start", eh, header(3, good[0], pair{b[0], o[0]}, good[2]), false},
		{"starts below all functions", eh, header(1, pair{0x10, o[2]}), false},
		{"FDE behind the section", eh, header(3, good[0], pair{b[0], 0x10000}, good[2]), false},
		{"FDE before the section", eh, header(3, good[0], pair{b[0], ^uint32(0x100)}, good[2]), false},
		{"the last bytes of the section", eh,
			header(3, good[0], pair{b[0], uint32(len(eh) - 2)}, good[2]), false},
		{"a CIE for an FDE", eh, header(3, pair{a[0], 0}, good[1], good[2]), false},
		{"the terminator", eh, header(3, pair{a[0], uint32(len(eh) - 4)}, good[1], good[2]), false},
		{"one function in another", over,
			header(4, pair{a[0], ov[0]}, pair{inner[0], ov[3]}, pair{b[0], ov[1]}, pair{c[0], ov[2]}), false},
		{"one function in another, which the header does not have", inside, header(1, pair{0x10, 0}), false},
		{"three that start together", twins,
			header(4, pair{a[0], tw[0]}, pair{a[0], tw[1]}, pair{a[0], tw[2]}, pair{c[0], tw[3]}), false},
		{"behind the terminator",
			append(slices.Clone(eh[:o[2]]), append([]byte{0, 0, 0, 0}, moved(eh[o[2]:])...)...),
			header(3, good[0], good[1], pair{c[0], o[2] + 4}), false},
		{"more rows than there are bytes", eh, header(4, good...), true},
		{"2^32 rows", eh, header(1<<32-1, good...), true},
		{"no rows", eh, header(0), true},
		{"version 2", eh, edit(0, 2), true},
		{"eh_frame_ptr of an unknown encoding", eh, edit(1, 0x0f), true},
		{"count omitted", eh, edit(2, 0xff), true},
		{"rows of another encoding", eh, edit(3, 0x1b), true},
		{"cut in its count", eh, header(3)[:10], true},
		{"no header", eh, nil, true},
		{"no section", nil, header(3, good...), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := cfi.Sections{Arch: context.ArchAMD64, EHFrame: c.eh, EHFrameAddr: firstEH,
				EHFrameHdr: c.hdr, EHFrameHdrAddr: firstHdr}
			all, _ := cfi.Load(s)
			opened := cfi.Open(s)
			expect.Equal(t, opened.Read(), c.read, "all read")
			sameEverywhere(t, all, opened)
			expect.Equal(t, opened.Read(), c.read, "all was read for its answers")
			opened.Complete()
			sameEverywhere(t, all, opened)
		})
	}
}

// moved is the record of an FDE four bytes further on, with its CIE where it was.
func moved(fde []byte) []byte {
	out := slices.Clone(fde)
	binary.LittleEndian.PutUint32(out[4:], binary.LittleEndian.Uint32(out[4:])+4)
	return out
}

// sameEverywhere compares all addresses around the hand-made functions, and rows of two
// machines that go from one table to the other.
func sameEverywhere(t *testing.T, all, opened *cfi.Table) {
	t.Helper()
	var m, fresh cfi.Machine
	var ra, ro cfi.Row
	for _, pc := range []uint64{0, 0x4fff, 0x5000, 0x500f, 0x5010, 0x501f, 0x5020, 0x507f, 0x5080, 0x50bf,
		0x50c0, 0x50ff, 0x5100, 0x517f, 0x5180, 0x6000, 0x603f, 0x6040, ^uint64(0)} {
		if a, b := find(all, pc), find(opened, pc); a != b {
			t.Errorf("%#x: %+v of all, %+v of the opened", pc, a, b)
		}
		a, b := fresh.Row(all, pc, &ra), m.Row(opened, pc, &ro)
		expect.True(t, a == b && equalRows(&ra, &ro),
			"%#x: row %v %+v of all, %v %+v of the opened", pc, a, ra.FDE, b, ro.FDE)
		m.Row(all, pc, &ro) // whose CIE must not be taken for the other's
	}
}

// TestFirstOfMany: a machine that is used with several tables keeps no CIE of another table.
func TestFirstOfMany(t *testing.T) {
	var tables []*cfi.Table
	for _, def := range []byte{8, 16, 24} {
		eh, o := handMade([2]uint64{0x5000, 0x5100})
		eh[15] = def // the CIE's offset of the CFA
		tables = append(tables, cfi.Open(cfi.Sections{Arch: context.ArchAMD64, EHFrame: eh,
			EHFrameAddr: firstEH, EHFrameHdr: header(1, pair{0x5000, o[0]}), EHFrameHdrAddr: firstHdr}))
	}
	var m cfi.Machine
	var row cfi.Row
	for i := range 9 {
		if why := m.Row(tables[i%3], 0x5001, &row); why != cfi.None || row.CFA.Off != int64(8*(i%3+1)) {
			t.Errorf("table %d: %v, CFA at %d", i%3, why, row.CFA.Off)
		}
	}
}

// TestFirstWork: what opening costs does not grow with the records, and a look-up
// allocates nothing: one that finds, one that does not, and one that meets damage.
func TestFirstWork(t *testing.T) {
	const many = 20000
	var ranges [][2]uint64
	for i := range uint64(many) {
		ranges = append(ranges, [2]uint64{0x100000 + 16*i, 0x100000 + 16*i + 12})
	}
	eh, offs := handMade(ranges...)
	var pairs []pair
	for i, off := range offs {
		pairs = append(pairs, pair{ranges[i][0], off})
	}
	pairs[7].off = 1 << 30 // outside
	pairs[9].off += 2      // nonsense
	s := cfi.Sections{Arch: context.ArchAMD64, EHFrame: eh, EHFrameAddr: firstEH,
		EHFrameHdr: header(many, pairs...), EHFrameHdrAddr: firstHdr}
	if n := testing.AllocsPerRun(20, func() { cfi.Open(s) }); n > 1 {
		t.Errorf("opening %d functions: %v allocations", many, n)
	}
	opened := cfi.Open(s)
	var m cfi.Machine
	var row cfi.Row
	for name, pc := range map[string]uint64{"found": 0x100100, "no FDE": 0x10010c,
		"FDE outside": 0x100070, "nonsense": 0x100090} {
		expect.Equal(t, testing.AllocsPerRun(3, func() { opened.Find(pc); m.Row(opened, pc, &row) }), 0,
			"%s: allocations", name)
		why := m.Row(opened, pc, &row)
		expect.True(t, (why == cfi.None) == (name != "no FDE"), "%s: %v", name, why)
	}
	expect.True(t, !opened.Read(), "all was read")
}

// TestLoadWork: what an index of all records costs, in allocations and bytes.
func TestLoadWork(t *testing.T) {
	paths, _ := filepath.Glob("../.cache/dotnet-9.*/package/dist/libcoreclr.so")
	if len(paths) == 0 {
		t.Log("SKIPPED-CHECK: no libcoreclr")
	}
	for _, path := range append(paths, hostLibc) {
		f, err := elf.Open(path)
		if err != nil {
			t.Log("SKIPPED-CHECK:", err)
			continue
		}
		s := module.CFISections(f, f.CFISections())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		table, _ := cfi.Load(s)
		runtime.ReadMemStats(&after)
		perFDE := float64(after.TotalAlloc-before.TotalAlloc) / float64(table.Len())
		whole := testing.AllocsPerRun(2, func() { module.LoadELF(0, path, 0, 1<<40, 0) })
		opened := testing.AllocsPerRun(2, func() { module.OpenELF(0, f, path, 0, 1<<40, 0) })
		t.Logf("%s: %d FDEs, %.1f bytes each, %v allocations to load, %v to open what was read",
			filepath.Base(path), table.Len(), perFDE, whole, opened)
		if perFDE > 45 || whole >= 50 || opened > 12 {
			t.Errorf("%s: %.1f bytes an FDE, %v allocations, %v opened",
				filepath.Base(path), perFDE, whole, opened)
		}
	}
}

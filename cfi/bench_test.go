package cfi_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// hostLibc is a library of some thousand functions that Linux hosts have.
const hostLibc = "/lib/x86_64-linux-gnu/libc.so.6"

func hostSections(b testing.TB) cfi.Sections {
	f, err := elf.Open(hostLibc)
	if err != nil {
		b.Skip("SKIPPED-CHECK: no x86-64 libc on this host")
	}
	return module.CFISections(f, f.CFISections())
}

// samplePCs takes one pc in the middle of every FDE.
func samplePCs(t *cfi.Table) []uint64 {
	var pcs []uint64
	t.Each(func(f cfi.FDE) bool { pcs = append(pcs, f.Lo+(f.Hi-f.Lo)/2); return true })
	// Spread them so that neighbours are not asked one after the other.
	out := make([]uint64, len(pcs))
	for i := range pcs {
		out[i] = pcs[i*7919%len(pcs)]
	}
	return out
}

func BenchmarkLoad(b *testing.B) {
	s := hostSections(b)
	b.SetBytes(int64(len(s.EHFrame)))
	b.ReportAllocs()
	for b.Loop() {
		t, _ := cfi.Load(s)
		b.ReportMetric(float64(t.Len()), "FDEs")
	}
}

func BenchmarkFind(b *testing.B) {
	t, _ := cfi.Load(hostSections(b))
	pcs := samplePCs(t)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		t.Find(pcs[i])
		if i++; i == len(pcs) {
			i = 0
		}
	}
}

func BenchmarkRow(b *testing.B) {
	t, _ := cfi.Load(hostSections(b))
	pcs := samplePCs(t)
	var m cfi.Machine
	var row cfi.Row
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if why := m.Row(t, pcs[i], &row); why != cfi.None {
			b.Fatal(why)
		}
		if i++; i == len(pcs) {
			i = 0
		}
	}
}

func BenchmarkEval(b *testing.B) {
	env := cfi.ExprEnv{Known: 1<<17 - 1}
	plt := []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}
	b.ReportAllocs()
	for b.Loop() {
		if _, why := cfi.Eval(plt, &env); why != cfi.None {
			b.Fatal(why)
		}
	}
}

func BenchmarkCommonRow(b *testing.B) {
	t, _ := cfi.Load(hostSections(b))
	pcs := samplePCs(t)
	var row cfi.CommonRow
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		t.CommonRow(pcs[i], &row)
		if i++; i == len(pcs) {
			i = 0
		}
	}
}

// At least nine in ten rows of the C library are common rows, and a common row equals that of Machine.Row.
func TestCommonRowsOfHost(t *testing.T) {
	tab, _ := cfi.Load(hostSections(t))
	var m cfi.Machine
	var row cfi.CommonRow
	var full cfi.Row
	all, common := 0, 0
	tab.Each(func(f cfi.FDE) bool {
		for pc := f.Lo; pc < f.Hi; pc += 1 + (f.Hi-f.Lo)/16 {
			all++
			if !tab.CommonRow(pc, &row) {
				continue
			}
			common++
			why := m.Row(tab, pc, &full)
			must.True(t, why == cfi.None && full.CFA.Kind == cfi.RegisterOffset &&
				full.CFA.Reg == uint16(row.Reg) && full.CFA.Off == int64(row.Off),
				"%#x: %+v, %v %+v", pc, row, why, full.CFA)
			for n := range 16 {
				word, rule := row.Words>>(4*n)&15, &full.Regs[n]
				if word == 0 && rule.Kind != cfi.Unspecified ||
					word != 0 && (rule.Kind != cfi.Offset || rule.Off != -8*int64(word)) {
					t.Fatalf("%#x: register %d in word %d, %+v", pc, n, word, rule)
				}
			}
		}
		return true
	})
	t.Logf("%d of %d rows are common ones", common, all)
	expect.True(t, common >= all*9/10, "%d of %d rows are common ones", common, all)
}

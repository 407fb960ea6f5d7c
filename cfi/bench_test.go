package cfi_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/module"
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

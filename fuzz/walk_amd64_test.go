package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

const (
	walkBias  = 0x5000_0000
	walkStack = 0x7000_0000
	walkJIT   = 0x9000_0000
	walkSteps = 64
)

// FuzzWalkAMD64 walks any stack by any call frame information. Whatever they
// say: no panic, a reason, bounded steps, no allocation, a stack pointer that
// only rises outside signal frames, and the same answer with and without the
// rule cache.
func FuzzWalkAMD64(f *testing.F) {
	seedWalkAMD64(f)
	u, plain := amd64.New(), amd64.New()
	plain.DisableCache(true)
	gen := uint32(0)
	f.Fuzz(func(t *testing.T, frames, stack []byte, ip, fp uint64, guess bool) {
		table := cfiTable(frames)
		if table == nil || len(stack) > 1<<16 {
			return
		}
		gen++
		mods := module.NewTable(gen, []module.Module{{Start: walkBias, End: walkBias + 1<<20, Bias: walkBias, CFI: table}},
			[]module.Range{{Start: walkJIT, End: walkJIT + 1<<16}})
		u.SetTable(mods)
		plain.SetTable(mods)
		mem := memory.New(memory.Run{Addr: walkStack, Data: stack})
		regs := amd64.Registers{RIP: ip, Known: context.AMD64All}
		for i := range regs.GPR {
			regs.GPR[i] = fp + uint64(i)<<4
		}
		regs.GPR[context.RSP], regs.GPR[context.RBP] = walkStack, fp
		checkWalkAMD64(t, u, plain, regs, mem, guess)
	})
}

func cfiTable(frames []byte) *cfi.Table {
	table, _ := cfi.Load(cfi.Sections{Arch: cfi.AMD64, EHFrame: frames, EHFrameAddr: 0x10_0000})
	if table == nil || table.Len() == 0 {
		return nil
	}
	return table
}

func checkWalkAMD64(t *testing.T, u, plain *amd64.Unwinder, regs amd64.Registers, mem *memory.Window, guess bool) {
	b := unwind.Bounds{Low: walkStack, High: walkStack + 1<<16, MaxSteps: walkSteps, Guess: guess}
	var out, out2 [walkSteps + 8]unwind.Frame
	first, second := regs, regs
	n, exact, stop := u.Walk(&first, true, unwind.TrustContext, mem, &b, out[:])
	n2, exact2, stop2 := plain.Walk(&second, true, unwind.TrustContext, mem, &b, out2[:])
	if n != n2 || exact != exact2 || stop != stop2 || out != out2 || first != second {
		t.Fatalf("with cache %d frames, %v; without %d, %v", n, stop, n2, stop2)
	}
	if stop == unwind.StopNone || n > walkSteps {
		t.Fatalf("%d frames, stop %v", n, stop)
	}
	for i := 1; i < n; i++ {
		if out[i].SP < out[i-1].SP && out[i-1].Kind != unwind.KindSignal {
			t.Fatalf("frame %d: SP fell from %#x to %#x", i, out[i-1].SP, out[i].SP)
		}
		if out[i-1].Trust.Doubtful() && !out[i].Trust.Doubtful() {
			t.Fatalf("frame %d: doubt forgotten", i)
		}
	}
	if a := testing.AllocsPerRun(1, func() {
		again := regs
		u.Walk(&again, true, unwind.TrustContext, mem, &b, out[:])
	}); a != 0 {
		t.Fatalf("%v allocations", a)
	}
}

// seedWalkAMD64 gives a CIE with one FDE over the whole module for several
// programs, and stacks with plausible words.
func seedWalkAMD64(f *testing.F) {
	var stack []byte
	for i := range uint64(64) {
		word := [4]uint64{walkBias + 0x100 + i, walkStack + 8*i + 32, walkJIT + i, 0}[i&3]
		if i > 48 {
			word = walkBias + i
		}
		stack = binary.LittleEndian.AppendUint64(stack, word)
	}
	for _, program := range [][]byte{
		nil,
		{0x0e, 24, 0x83, 2, 0x86, 3},
		{0x0c, 6, 16, 0x86, 2},
		{0x0f, 3, 0x76, 0x78, 0x06},
		{0x10, 3, 2, 0x23, 8},
		{0x07, 16},
		{0x16, 7, 3, 0x23, 0x10, 0x96},
	} {
		for _, aug := range []string{"zR\x00", "zRS\x00"} {
			frames := ehRecord(append(append([]byte{0, 0, 0, 0, 1}, aug...), 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1))
			body := binary.LittleEndian.AppendUint32(nil, uint32(len(frames)+4))
			body = binary.LittleEndian.AppendUint64(body, 0)
			body = binary.LittleEndian.AppendUint64(body, 1<<20)
			frames = append(frames, ehRecord(append(append(body, 0), program...))...)
			f.Add(append(frames, 0, 0, 0, 0), stack, uint64(walkBias+0x10), uint64(walkStack+64), true)
			f.Add(append(frames, 0, 0, 0, 0), stack, uint64(walkBias+1<<20), uint64(walkStack+64), true)
		}
	}
}

func ehRecord(body []byte) []byte {
	for len(body)%8 != 4 {
		body = append(body, 0)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

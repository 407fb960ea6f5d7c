package fuzz

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

const (
	walkBias  = 0x5000_0000
	walkStack = 0x7000_0000
	walkJIT   = 0x9000_0000
	walkSteps = 64
)

// FuzzWalkAMD64 walks any stack by any call frame information. For every input:
//
//   - no panic, no allocation, and at most walkSteps steps
//   - a reason at the end of the walk
//   - a stack pointer that only rises outside signal frames
//   - the same result with and without the rule cache
func FuzzWalkAMD64(f *testing.F) {
	seedWalkAMD64(f)
	fuzzFrames(f, context.ArchAMD64)
}

// fuzzFrames walks any stack by any call frame information of an architecture.
func fuzzFrames(f *testing.F, arch context.Arch) {
	w := newWalkers()
	f.Fuzz(func(t *testing.T, frames, stack []byte, ip, fp uint64, guess bool) {
		frames, stack = frames[:len(frames):len(frames)],
			stack[:len(stack):len(stack)] // a read past the end is a panic
		table, _ := cfi.Load(cfi.Sections{Arch: arch, EHFrame: frames, EHFrameAddr: walkFrames})
		if table == nil || table.Len() == 0 || len(stack) > 1<<16 {
			return
		}
		mods := w.table(module.Module{Start: walkBias, End: walkBias + 1<<20, Bias: walkBias, CFI: table})
		mem := memory.New(memory.Run{Addr: walkStack, Data: stack})
		for _, d := range nearby {
			w.check(t, mods, startOf(arch, ip+d, fp, walkBias+0x44, stack), mem, guess)
		}
	})
}

// startOf returns registers with values near fp. The stack pointer has room below it, where a wrong caller's
// may be. ra is the return address of ARM64.
func startOf(arch context.Arch, ip, fp, ra uint64, stack []byte) context.Registers {
	sp := walkStack + uint64(len(stack)/4)&^15
	if arch == context.ArchARM64 {
		regs := context.ARM64{PC: ip, Sp: sp, Known: context.ARM64All}
		for i := range regs.X {
			regs.X[i] = fp + uint64(i)<<4
		}
		regs.X[29], regs.X[30] = fp, ra
		return context.FromARM64(regs)
	}
	regs := context.AMD64{RIP: ip, Known: context.AMD64All}
	for i := range regs.GPR {
		regs.GPR[i] = fp + uint64(i)<<4
	}
	regs.GPR[context.RSP], regs.GPR[context.RBP] = sp, fp
	return context.FromAMD64(regs)
}

// nearby are the distances of the addresses that are walked from one after the
// other: a cache that takes one for another is found out.
var nearby = [...]uint64{0, 1, 4, 64, 0}

// maxWalkTime is far above the time of walkSteps steps: each runs at most a few thousand
// operations, so all take a few milliseconds. A loop without a bound exceeds it.
const maxWalkTime = 10 * time.Second

func checkTime(t *testing.T, begin time.Time) {
	if d := time.Since(begin); d > maxWalkTime {
		t.Fatalf("%d steps took %v", walkSteps, d)
	}
}

// checkFrames: a reason, bounded steps, a stack pointer that only rises outside
// signal and machine frames, and a doubt that is never forgotten.
func checkFrames(t *testing.T, mods *module.Table, out []unwind.Frame, stop unwind.Stop) {
	must.True(t, stop != unwind.StopNone && len(out) <= walkSteps, "%d frames, stop %v", len(out), stop)
	for i := 1; i < len(out); i++ {
		left, now := &out[i-1], &out[i]
		if now.SP < left.SP && left.Kind != unwind.KindSignal && !machineFrame(mods, left, now) {
			t.Fatalf("frame %d: SP fell from %#x to %#x", i, left.SP, now.SP)
		}
		if left.Trust.Doubtful() && !now.Trust.Doubtful() {
			t.Fatalf("frame %d: doubt forgotten", i)
		}
	}
}

// machineFrame reports whether a PE frame may have been left through a machine
// frame: what it interrupted is exact, and may be on any stack.
func machineFrame(mods *module.Table, left, now *unwind.Frame) bool {
	return left.Module >= 0 && mods.At(int(left.Module)).PE != nil && now.Exact
}

// seedWalkAMD64 gives a CIE with one FDE over the whole module for several
// programs, and stacks with plausible words.
func seedWalkAMD64(f *testing.F) {
	stack := plausibleStack()
	for _, s := range sorted(seedCFI(f)) {
		if s.Arch == context.ArchAMD64 && s.EHFrame != nil {
			eachWalkSeed(s, 3, func(ip uint64) { f.Add(s.EHFrame, stack, ip, uint64(walkStack+64), false) })
		}
	}
	if data, addr, ok := hostFrames(4096); ok {
		eachWalkSeed(cfi.Sections{Arch: context.ArchAMD64, EHFrame: data, EHFrameAddr: addr}, 5,
			func(ip uint64) {
				f.Add(data, stack, ip, uint64(walkStack+64), true)
			})
	}
	eachFrames([]byte{1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1}, [][]byte{
		nil,
		{0x0e, 24, 0x83, 2, 0x86, 3},
		{0x0c, 6, 16, 0x86, 2},
		{0x0f, 3, 0x76, 0x78, 0x06},
		{0x10, 3, 2, 0x23, 8},
		{0x07, 16},
		{0x16, 7, 3, 0x23, 0x10, 0x96},
	}, func(frames []byte) {
		f.Add(frames, stack, uint64(walkBias+0x10), uint64(walkStack+64), true)
		f.Add(frames, stack, uint64(walkBias+1<<20), uint64(walkStack+64), true)
		f.Add(frames, stack, uint64(walkBias+0x10), uint64(walkStack+0x180), false) // slots inside the window
	})
}

// eachFrames makes unwind data of each program: a CIE, and one FDE that covers the whole module. It calls
// add with the data of a usual function, and with those of a signal frame. cie is what follows the CIE's
// augmentation string.
func eachFrames(cie []byte, programs [][]byte, add func(frames []byte)) {
	for _, program := range programs {
		for _, aug := range []string{"zR\x00", "zRS\x00"} {
			frames := ehRecord(append(append([]byte{0, 0, 0, 0, 1}, aug...), cie...))
			body := binary.LittleEndian.AppendUint32(nil, uint32(len(frames)+4))
			body = binary.LittleEndian.AppendUint64(body, 0)
			body = binary.LittleEndian.AppendUint64(body, 1<<20)
			frames = append(frames, ehRecord(append(append(body, 0), program...))...)
			add(append(frames, 0, 0, 0, 0))
		}
	}
}

// plausibleStack has words of every kind a walk may meet: addresses of the
// module, of the stack, of managed code, zeros.
func plausibleStack() (stack []byte) {
	for i := range uint64(64) {
		word := [4]uint64{walkBias + 0x100 + i, walkStack + 8*i + 32, walkJIT + i, 0}[i&3]
		if i > 48 {
			word = walkBias + i
		}
		stack = binary.LittleEndian.AppendUint64(stack, word)
	}
	return stack
}

// walkFrames is where a walked module's frames lie in it.
const walkFrames = 0x10_0000

// eachWalkSeed calls add with the middle of every n-th function of real sections. The address
// is one of the walked module. Its call frame information is not at the linked address, but
// functions and frames keep their distance from each other.
func eachWalkSeed(s cfi.Sections, n int, add func(ip uint64)) {
	table, _ := cfi.Load(s)
	i := 0
	table.Each(func(fde cfi.FDE) bool {
		if i++; i%n == 0 {
			add(walkBias + walkFrames + fde.Lo + (fde.Hi-fde.Lo)/2&^3 - s.EHFrameAddr)
		}
		return true
	})
}

func ehRecord(body []byte) []byte {
	for len(body)%8 != 4 {
		body = append(body, 0)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

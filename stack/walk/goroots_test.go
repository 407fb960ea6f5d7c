package walk

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A stack of Go is complete up to a root of Go's runtime, whose unwind data do not mark it. It is not if C
// called the goroutine, or if the walk ended before a root.
func TestGoRoots(t *testing.T) {
	const image, stack, size = 0x1000_0000, 0x7000, 0x40
	const leaf, root, callback, past = image + 0x100, image + 0x140, image + 0x180, image + 0x1c0
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	for at := uint64(leaf - image); at <= past-image; at += size {
		frames.FDE(&cie, at, size)
	}
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	modules := module.NewTable(1,
		[]module.Module{{ID: 7, Start: image, End: image + 0x1000, Bias: image, CFI: table}}, nil)
	const garbage = 0x5555
	for _, c := range []struct {
		name   string
		ip     uint64
		ras    []uint64
		frames int // with that of the gap
		gap    merge.Gap
	}{
		{"a root", leaf + 4, []uint64{root + 4, garbage}, 2, merge.GapNone},
		{"a root at its end", leaf + 4, []uint64{root + size, garbage}, 2, merge.GapNone},
		{"a root above others", leaf + 4, []uint64{past + 4, root + 4, past + 4, garbage}, 3, merge.GapNone},
		{"no root", leaf + 4, []uint64{past + 4, garbage}, 4, merge.GapNoInfo},
		{"called by C", leaf + 4, []uint64{callback + 4, root + 4, garbage}, 5, merge.GapNoInfo},
		{"interrupted in mcall", root + 1, []uint64{past + 4, garbage}, 4, merge.GapNoInfo},
	} {
		w := New(context.ArchAMD64)
		w.Unmanaged.SetTable(modules)
		w.goSymbols[7] = []goSymbol{{root - image, root - image + size, goRoot},
			{callback - image, callback - image + size, goCallback}}
		var data []byte
		for _, word := range append(c.ras, 0, 0) {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		regs := context.FromAMD64(context.AMD64{RIP: c.ip, Known: context.AMD64All})
		regs.AMD64.GPR[context.RSP] = stack
		got, gap, _ := w.Walk(&Capture{Regs: regs, Stack: memory.Run{Addr: stack, Data: data}})
		expect.True(t, gap == c.gap && len(got) == c.frames,
			"%s: %v, %d frames: %+v", c.name, gap, len(got), got)
	}
}

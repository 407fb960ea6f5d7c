package machine

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestRestoreRTAMD64 steps from both trampolines of x86-64 to the interrupted function.
func TestRestoreRTAMD64(t *testing.T) {
	for name, tramp := range map[string]image.Func{"cfi": image.SignalReturn(image.AMD64),
		"code": image.RestoreRT(image.AMD64)} {
		t.Run(name, func(t *testing.T) {
			root := must.Get(image.ShapeAMD64{Saves: []image.Reg{3, 12}, Alloc: 40, Calls: 1, Body: 2,
				Root: true}.Func(image.ELF, "root"))(t)
			handler := must.Get(image.ShapeAMD64{Leaf: true, Body: 1}.Func(image.ELF, "handler"))(t)
			im := must.Get(image.Build(image.AMD64, image.ELF, "restore", imageBase,
				[]image.Func{root, handler, tramp}))(t)
			w := worldOf(t, im, 11)
			th := w.t
			th.Start(im, &im.Funcs[0])
			th.Step()
			ok := th.Interrupt(im, &im.Funcs[1]) && th.RunTo(func(t *Thread) bool {
				return im.Find(t.State().PC) == &im.Funcs[2]
			}, 100)
			must.True(t, ok, "no signal returned")
			truth := th.Truth(nil)
			regs, want := truth[0].State.Registers(image.AMD64), truth[1].State.AMD64()
			at := unwind.Interrupted(&regs)
			w.mem.Reset(th.Stack())
			var f unwind.Frame
			stop := w.walker.Step(&at, &w.mem, nil, &f)
			got := &regs.AMD64
			expect.True(t, stop == unwind.StopNone && at.Exact && got.RIP == want.RIP && got.GPR == want.GPR,
				"%v, exact %v: %x, not %x", stop, at.Exact, got.GPR, want.GPR)
			expect.Equal(t, at.Trust == unwind.TrustCFI, name == "cfi", "found by %v", at.Trust)
		})
	}
}

// TestRAState checks that the reader's rows say where the return address is signed. A walker on Linux strips
// every address, so its tests would not notice a wrong row.
func TestRAState(t *testing.T) {
	w := worldARM64(t, image.ELF, 9, 300)
	m := w.module()
	var c cfi.Machine
	var row cfi.Row
	signed := 0
	for _, fn := range w.fns {
		if fn.NoInfo {
			continue
		}
		rows := fn.Rows(image.ARM64)
		for i := range rows {
			must.Equal(t, c.Row(m.CFI, uint64(fn.RVA+fn.Ops[i].Off), &row), cfi.None, "%s, op %d", fn.Name, i)
			must.Equal(t, row.RASign, rows[i].Signed, "%s, op %d: signed", fn.Name, i)
			if row.RASign {
				signed++
			}
		}
	}
	expect.True(t, signed != 0, "no return address is signed")
}

package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/unwind"
)

// TestStepByFollowing leaves code without unwind data, frame records and simple
// ends.
func TestStepByFollowing(t *testing.T) {
	for _, c := range []struct {
		name string
		code []uint32
		at   uint64 // offset
		down uint64 // how far SP is below the caller's
		lr   uint64 // where x30 is saved, from SP
	}{
		{"a frame taken by a register", []uint32{
			0xa9407bfd, // ldp x29, x30, [sp]
			0xd282000c, // mov x12, #0x1000
			0x8b2c63ff, // add sp, sp, x12
			0xd65f03c0,
		}, 0, 0x1000, 8},
		{"two ways out", []uint32{
			0x340000a0,             // cbz w0, to the second
			0xf94007fe, 0x910083ff, // ldr x30, [sp, #8]; add sp, sp, #32
			0xd65f03c0, 0xd503201f,
			0xf94007fe, 0x910083ff, 0xd65f03c0,
		}, 0, 32, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(makeTable(t, c.code)), newStack(), start(codeLo+c.at, sp0)
			r.X[regLR] = 0x1234
			s.set(sp0+c.lr, codeCall)
			at := stateOf(&r, false)
			var f unwind.Frame
			stop := u.Step(&at, s.window(), &unwind.Bounds{Low: stackLow, High: stackLow + stackSize, Guess: true}, &f)
			if got := at.Regs.ARM64; stop != unwind.StopNone || got.PC != codeCall || got.Sp != sp0+c.down {
				t.Errorf("stop %v, pc %#x, sp %#x, trust %v", stop, got.PC, got.Sp, at.Trust)
			}
		})
	}
}

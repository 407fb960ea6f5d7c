package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// After Drop, nothing of the last walk is kept.
func TestDrop(t *testing.T) {
	u := New()
	u.section.hot, u.section.out = memory.Run{Data: make([]byte, 8)}, make([]unwind.Frame, 1)
	u.Drop()
	expect.True(t, u.section.hot.Data == nil && u.section.out == nil, "%+v", &u.section)
}

// TestSetSlotBounds: what fits a rule's 16 bits, in words.
func TestSetSlotBounds(t *testing.T) {
	for off, want := range map[int64]bool{0: true, -8: true, 4: false, -32768 * 8: true, -32769 * 8: false,
		32766 * 8: true, 32767 * 8: false} {
		r := makeRule(RuleSlots, 0)
		if r.setSlot(3, off) != want {
			t.Errorf("%d: fits %v", off, !want)
		} else if want && r.slotAt(3, 1<<40) != uint64(1<<40+off) {
			t.Errorf("%d: at %#x", off, r.slotAt(3, 1<<40))
		}
	}
}

// TestContextCode: a whole CONTEXT on the stack gives sp and pc, each from its own
// place.
func TestContextCode(t *testing.T) {
	const sp = 0x7000_0000
	data := make([]byte, 0x400)
	for i := 0; i < len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(0x1000+i))
	}
	var u undo
	regs := Registers{Sp: sp}
	u.execute(&regs, memory.New(memory.Run{Addr: sp, Data: data}))
	if o := u.codes([]byte{0xea, 0xe4}); o != undone || u.regs.Sp != 0x1100 || u.regs.PC != 0x1108 ||
		u.regs.X[19] != 0x1000+8+8*19 || u.regs.D[0] != 0x1110+16*8 || !u.exact {
		t.Errorf("%v: %+v, exact %v", o, u.regs, u.exact)
	}
}

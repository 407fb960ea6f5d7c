package seed

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// A link register or a frame pointer that the stack contradicts. The seed has its frame record 32 bytes above
// its stack pointer.
func TestWitness(t *testing.T) {
	const sp, ip = 0x10100, 0x7ff0_0000_1000
	for _, c := range []struct {
		name   string
		record uint64 // x29
		frames []unwind.Frame
		saved  uint64 // address of a word that is equal to ip
		want   bool
	}{
		{"called by its link register", sp + 32, []unwind.Frame{{SP: sp}}, 0, true},
		{"its return address is further up", sp + 32, []unwind.Frame{{SP: sp}}, sp + 48, true},
		{"another function saved the link register", sp + 32, []unwind.Frame{{SP: sp}}, sp + 8, false},
		{"another function saved it in its record", sp + 32, []unwind.Frame{{SP: sp}}, sp + 40, false},
		{"read from the stack", sp + 32, []unwind.Frame{{SP: sp - 32}}, sp + 8, true},
		{"two frames", sp + 32, []unwind.Frame{{SP: sp - 32}, {SP: sp}}, sp + 8, true},
		{"a record at the stack pointer", sp, []unwind.Frame{{SP: sp - 32}}, 0, true},
		{"a record below the stack pointer", sp - 16, []unwind.Frame{{SP: sp - 32}}, 0, false},
		{"a misaligned record", sp + 36, []unwind.Frame{{SP: sp - 32}}, 0, false},
		{"a record outside of the stack", 0x20000, []unwind.Frame{{SP: sp - 32}}, 0, false},
		{"a record far up", 0x1f000, []unwind.Frame{{SP: sp}}, sp + longestFrame, true},
	} {
		regs := context.Registers{Arch: context.ArchARM64}
		regs.SetIP(ip)
		regs.SetSP(sp)
		regs.ARM64.X[29] = c.record
		stack := make([]byte, 0x2000)
		if c.saved != 0 {
			binary.LittleEndian.PutUint64(stack[c.saved-0x10000:], ip)
		}
		s := unwind.Interrupted(&regs)
		mem := memory.New(memory.Run{Addr: 0x10000, Data: stack})
		if got := witnessed(&s, mem, &unwind.Bounds{Low: 0x10000, High: 0x20000}, c.frames); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Registers of x86-64 say nothing about a frame.
func TestNoWitness(t *testing.T) {
	regs := context.Registers{Arch: context.ArchAMD64}
	regs.SetSP(0x10100)
	s := unwind.Interrupted(&regs)
	if !witnessed(&s, memory.New(), nil, []unwind.Frame{{SP: 0x100f8}}) {
		t.Error("a frame pointer of x86-64 is a witness")
	}
}

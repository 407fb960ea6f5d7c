package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// TestProbeLoop tests the jump at the end of a loop that moves the stack pointer
// down to the place in a register. The jump is decided only if both are known.
func TestProbeLoop(t *testing.T) {
	for _, c := range []struct {
		name   string
		cmp    []byte
		jump   byte
		taken  bool // if the stack pointer is below the register
		equal  bool // taken if the two are equal
		decide bool
	}{
		{"cmp rsp, r11; jne", []byte{0x4c, 0x39, 0xdc}, 0x75, true, false, true},
		{"cmp rsp, r11; je", []byte{0x4c, 0x39, 0xdc}, 0x74, false, true, true},
		{"cmp rsp, r11; jb", []byte{0x4c, 0x39, 0xdc}, 0x72, true, false, true},
		{"cmp rsp, r11; jae", []byte{0x4c, 0x39, 0xdc}, 0x73, false, true, true},
		{"cmp rsp, r11; jbe", []byte{0x4c, 0x39, 0xdc}, 0x76, true, true, true},
		{"cmp rsp, r11; jl", []byte{0x4c, 0x39, 0xdc}, 0x7c, true, false, true},
		{"cmp rsp, r11; jle", []byte{0x4c, 0x39, 0xdc}, 0x7e, true, true, true},
		{"cmp r11, rsp; jb", []byte{0x49, 0x39, 0xe3}, 0x72, false, false, true},
		{"cmp r11, rsp by the other opcode; ja", []byte{0x4c, 0x3b, 0xdc}, 0x77, true, false, true},
		{"cmp rsp, r11; js", []byte{0x4c, 0x39, 0xdc}, 0x78, false, false, false},
		{"cmp rsp, rcx, which is not known; jne", []byte{0x48, 0x39, 0xcc}, 0x75, false, false, false},
		{"cmp rbx, r11; jne", []byte{0x4c, 0x39, 0xdb}, 0x75, false, false, false},
		{"cmp esp, r11d; jne", []byte{0x44, 0x39, 0xdc}, 0x75, false, false, false},
		{"cmp rsp, [r11]; jne", []byte{0x49, 0x3b, 0x23}, 0x75, false, false, false},
	} {
		for _, equal := range []bool{false, true} {
			var e emulator
			sp, want := uint64(0x1000), c.taken
			if equal {
				sp, want = 0x2000, c.equal
			}
			e.set(context.RSP, value64{sp, knownValue})
			e.set(context.RBX, value64{sp, knownValue})
			e.set(context.R11, value64{0x2000, knownValue})
			in, jump := x86.Decode(c.cmp), x86.Decode([]byte{c.jump, 0})
			e.run(&in, nil)
			taken, ok := e.cmp.decides(&jump)
			expect.True(t, ok == c.decide && taken == want,
				"%s, equal %v: taken %v, decided %v", c.name, equal, taken, ok)
			long := x86.Decode([]byte{0x0f, c.jump + 0x10, 0, 0, 0, 0})
			if taken, ok := e.cmp.decides(&long); ok != c.decide || taken != want {
				t.Errorf("%s, a long jump, equal %v: taken %v, decided %v", c.name, equal, taken, ok)
			}
		}
	}
}

// A function that touches its pages one by one is left from everywhere in its
// loop, in whichever turn.
func TestStepOutOfProbeLoop(t *testing.T) {
	code := []byte{
		0x4c, 0x8d, 0x9c, 0x24, 0x40, 0xff, 0xff, 0xff, // lea r11, [rsp-0xc0]
		0x48, 0x83, 0xec, 0x40, // sub rsp, 0x40
		0x48, 0x83, 0x0c, 0x24, 0, // or qword ptr [rsp], 0
		0x4c, 0x39, 0xdc, // cmp rsp, r11
		0x75, 0xf2, // jne to the sub
		0x48, 0x85, 0xff, // test rdi, rdi
		0x74, 2, // jz over the next
		0x31, 0xc0, // xor eax, eax
		0x48, 0x81, 0xc4, 0xc0, 0, 0, 0, // add rsp, 0xc0
		0xc3,
	}
	const entry = sp0 + 0x100
	for _, p := range []struct{ at, down uint64 }{
		{0, 0}, {8, 0}, {8, 0x40}, {8, 0x80}, {12, 0x40}, {12, 0x80}, {17, 0x40}, {17, 0xc0}, {20, 0x40},
		{20, 0x80}, {20, 0xc0}, {22, 0xc0}, {36, 0},
	} {
		s, r := newStack(), start(codeLo+p.at, entry-p.down)
		s.Set(entry, codeCall)
		r.GPR[context.R11] = entry - 0xc0
		var f unwind.Frame
		_, stop := stepOf(unwinder(codeTable(t, code)), &r, true, s.Window(),
			&unwind.Bounds{Low: stackLow, High: stackLow + stackSize, Guess: true}, &f)
		expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.GPR[context.RSP] == entry+8,
			"+%d with %#x bytes taken: stop %v, ip %#x, sp %#x", p.at, p.down, stop, r.RIP,
			r.GPR[context.RSP])
	}
}

// TestConditions: the conditions of unsigned and signed numbers.
func TestConditions(t *testing.T) {
	const minus = ^uint64(0)
	pairs := [][2]uint64{{1, 2}, {2, 1}, {2, 2}, {minus, 1}, {1, minus}}
	for jump, want := range map[byte][5]bool{
		0x72: {true, false, false, false, true}, // jb
		0x73: {false, true, true, true, false},
		0x76: {true, false, true, false, true}, // jbe
		0x77: {false, true, false, true, false},
		0x7c: {true, false, false, true, false}, // jl
		0x7d: {false, true, true, false, true},
		0x7e: {true, false, true, true, false}, // jle
		0x7f: {false, true, false, false, true},
	} {
		in := x86.Decode([]byte{jump, 0})
		for i, p := range pairs {
			c := comparison{p[0], p[1], true}
			if taken, ok := c.decides(&in); !ok || taken != want[i] {
				t.Errorf("%#x of %d and %d: %v, %v", jump, int64(p[0]), int64(p[1]), taken, ok)
			}
		}
	}
}

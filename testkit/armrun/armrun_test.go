package armrun

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func words(ws ...uint32) (b []byte) {
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// Results of instructions, according to the manual.
func TestDo(t *testing.T) {
	const base = 0x1000
	for _, c := range []struct {
		name string
		word uint32
		next Next
		want func(m *Machine) bool
	}{
		{"sub sp, sp, #4096", 0xd14007ff, On, func(m *Machine) bool { return m.SP == base+256-4096 }},
		{"add x29, sp, #16", 0x910043fd, On, func(m *Machine) bool { return m.X[29] == base+256+16 }},
		{"sub sp, sp, x9", 0xcb2963ff, On, func(m *Machine) bool { return m.SP == base+256-9 }},
		{"mov x19, x0", 0xaa0003f3, On, func(m *Machine) bool { return m.X[19] == 0 }},
		{"movz x9, #0x12, lsl #16", 0xd2a00249, On, func(m *Machine) bool { return m.X[9] == 0x120000 }},
		{"movk x9, #0x12, lsl #48", 0xf2e00249, On, func(m *Machine) bool { return m.X[9] == 0x12<<48|9 }},
		{"movn w9, #0", 0x12800009, On, func(m *Machine) bool { return m.X[9] == math.MaxUint32 }},
		{"stp x29, x30, [sp, #-32]!", 0xa9be7bfd, On,
			func(m *Machine) bool { return m.SP == base+224 && m.word(224) == 29 && m.word(232) == 30 }},
		{"ldp x19, x20, [sp], #16", 0xa8c153f3, On,
			func(m *Machine) bool { return m.SP == base+272 && m.X[19] == 32 && m.X[20] == 33 }},
		{"ldp d8, d9, [sp, #16]", 0x6d4127e8, On,
			func(m *Machine) bool { return m.SP == base+256 && m.D[8] == 34 && m.D[9] == 35 }},
		{"ldp q0, q1, [sp]", 0xad4007e0, On, func(m *Machine) bool { return m.D[0] == 32 && m.D[1] == 34 }},
		{"str x30, [sp, #-16]!", 0xf81f0ffe, On,
			func(m *Machine) bool { return m.SP == base+240 && m.word(240) == 30 }},
		{"ldr w1, [sp, #4]", 0xb94007e1, On, func(m *Machine) bool { return m.X[1] == 0 }},
		{"str xzr, [sp, #8]", 0xf90007ff, On,
			func(m *Machine) bool { return m.word(264) == 0 && m.word(256) == 32 }},
		{"ret", 0xd65f03c0, Left, func(m *Machine) bool { return m.PC == 30 }},
		{"ldr x0, [x1]: not of the stack", 0xf9400020, Refused,
			func(m *Machine) bool { return m.PC == 0x400 }},
		{"bl", 0x94000001, Refused, func(m *Machine) bool { return true }},
		{"cbz", 0xb4000040, Refused, func(m *Machine) bool { return true }},
		{"ldrsw x0, [sp]", 0xb98003e0, Refused, func(m *Machine) bool { return true }},
	} {
		m := &Machine{Base: base}
		for i := range uint64(64) {
			m.Stack = binary.LittleEndian.AppendUint64(m.Stack, i)
		}
		for i := range m.X {
			m.X[i] = uint64(i)
		}
		m.SP, m.PC = base+256, 0x400
		if next := m.Do(c.word); next != c.next || !c.want(m) || next == On && m.PC != 0x404 {
			t.Errorf("%s: %v, %+v", c.name, next, m.Registers)
		}
	}
}

func (m *Machine) word(off int) uint64 { return binary.LittleEndian.Uint64(m.Stack[off:]) }

// A frame undone wrongly at any instruction is found.
func TestFrames(t *testing.T) {
	code := words(
		0xa9be7bfd, // stp x29, x30, [sp, #-32]!
		0x910003fd, // mov x29, sp
		0xf9000bf3, // str x19, [sp, #16]
		0x94000001, // bl
		0xf9400bf3, // ldr x19, [sp, #16]
		0xa8c27bfd, // ldp x29, x30, [sp], #32
		0xd65f03c0, // ret
	)
	const at, ret = 0x5000, 0x9004
	undo := func(m *Machine, off uint64) (r Registers, err error) {
		r = m.Registers
		if off >= 4 && off <= 20 {
			slot := m.SP - m.Base
			r.X[29], r.X[30], r.SP = m.word(int(slot)), m.word(int(slot+8)), m.SP+32
			if off >= 12 {
				r.X[19] = m.word(int(slot + 16))
			}
		}
		r.PC = r.X[30]
		return r, nil
	}
	got, err := Frames(code, at, ret, undo)
	expect.True(t, err == nil && got == (Counts{Prolog: 4, Epilog: 3, Epilogs: 1}), "%+v, %v", got, err)
	for off := uint64(0); off <= 24; off += 4 {
		for name, spoil := range map[string]func(*Registers){
			"sp":  func(r *Registers) { r.SP += 16 },
			"x19": func(r *Registers) { r.X[19] ^= 1 },
			"pc":  func(r *Registers) { r.PC += 4 },
			"d8":  func(r *Registers) { r.D[8] ^= 1 },
		} {
			_, err := Frames(code, at, ret, func(m *Machine, o uint64) (Registers, error) {
				r, err := undo(m, o)
				if o == off {
					spoil(&r)
				}
				return r, err
			})
			expect.True(t, err != nil, "%s is wrong at %#x, and nothing is said", name, off)
		}
	}
}

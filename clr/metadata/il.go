package metadata

import "encoding/binary"

// IL returns the size of a method's header, and the size of the IL after it (ECMA-335 II.25.4). b begins
// with the header. HeaderSize bytes are enough.
func IL(b []byte) (header, size int, ok bool) {
	const tiny, fat = 2, 3
	switch {
	case len(b) > 0 && b[0]&3 == tiny:
		return 1, int(b[0] >> 2), true
	case len(b) >= HeaderSize && b[0]&3 == fat:
		size := binary.LittleEndian.Uint32(b[4:])
		return 4 * int(b[1]>>4), int(size), size <= maxIL
	}
	return 0, 0, false
}

// HeaderSize is the size of the largest header of a method's IL.
const HeaderSize = 12

// maxIL bounds a method's IL.
const maxIL = 1 << 20

// Opcodes of IL (ECMA-335 III).
const (
	opJmp      = 0x27
	opCall     = 0x28
	opSwitch   = 0x45
	opCallvirt = 0x6f
	opNewobj   = 0x73
	opPrefix   = 0xfe // the opcode is in the next byte
)

// operands holds the size of each opcode's operand, in bytes. Opcodes of two bytes begin at 256.
var operands = func() (size [512]byte) {
	set := func(n byte, first, last int) {
		for op := first; op <= last; op++ {
			size[op] = n
		}
	}
	const two = 256
	set(1, 0x0e, 0x13) // ldarg.s to stloc.s
	set(1, 0x1f, 0x1f) // ldc.i4.s
	set(4, 0x20, 0x20)
	set(8, 0x21, 0x21)
	set(4, 0x22, 0x22)
	set(8, 0x23, 0x23)
	set(4, 0x27, 0x29)         // jmp, call, calli
	set(1, 0x2b, 0x37)         // short branches
	set(4, 0x38, 0x44)         // branches
	set(4, 0x6f, 0x75)         // callvirt to isinst
	set(4, 0x79, 0x79)         // unbox
	set(4, 0x7b, 0x81)         // ldfld to stobj
	set(4, 0x8c, 0x8d)         // box, newarr
	set(4, 0x8f, 0x8f)         // ldelema
	set(4, 0xa3, 0xa5)         // ldelem, stelem, unbox.any
	set(4, 0xc2, 0xc2)         // refanyval
	set(4, 0xc6, 0xc6)         // mkrefany
	set(4, 0xd0, 0xd0)         // ldtoken
	set(4, 0xdd, 0xdd)         // leave
	set(1, 0xde, 0xde)         // leave.s
	set(4, two+0x06, two+0x07) // ldftn, ldvirtftn
	set(2, two+0x09, two+0x0e) // ldarg to stloc
	set(1, two+0x12, two+0x12) // unaligned.
	set(4, two+0x15, two+0x16) // initobj, constrained.
	set(1, two+0x19, two+0x19) // no.
	set(4, two+0x1c, two+0x1c) // sizeof
	return size
}()

// Calls reports whether IL calls a method with a name, which is without its type (.ctor for a constructor).
// Instructions after a truncated one are ignored.
func (m *Module) Calls(il []byte, name string) bool {
	for len(il) > 0 {
		op := int(il[0])
		if il = il[1:]; op == opPrefix && len(il) > 0 {
			op, il = 256+int(il[0]), il[1:]
		}
		size := int(operands[op])
		if op == opSwitch && len(il) >= 4 {
			size = 4 + 4*int(binary.LittleEndian.Uint32(il))
		}
		if size > len(il) {
			return false
		}
		switch op {
		case opCall, opCallvirt, opNewobj, opJmp:
			if m.called(binary.LittleEndian.Uint32(il)) == name {
				return true
			}
		}
		il = il[size:]
	}
	return false
}

// called returns the name of the method that a token in IL refers to. It returns "" if the token refers to no
// method.
func (m *Module) called(token uint32) string {
	rid := int(token & 0xffffff)
	switch token >> 24 {
	case tableMethodDef:
		return m.text(m.cell(tableMethodDef, rid, 3))
	case tableMemberRef:
		return m.text(m.cell(tableMemberRef, rid, 1))
	case tableMethodSpec:
		of := m.cell(tableMethodSpec, rid, 0) // MethodDefOrRef
		return m.called(uint32(codes['H'].tables[of&1]<<24 | of>>1&0xffffff))
	}
	return ""
}

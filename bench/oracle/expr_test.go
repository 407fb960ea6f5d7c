package oracle

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/cfi"
)

// opsText writes an expression as dwrows does: opcode and operands of every
// operation, in hex. It shares no code with cfi, and answers "?" for what it
// cannot read, which nothing of libdw equals.
func opsText(e []byte) string {
	var out []string
	for len(e) > 0 {
		op := e[0]
		a, b, n := operands(op, e[1:])
		if n < 0 {
			return "?"
		}
		out = append(out, fmt.Sprintf("%x:%x:%x", op, a, b))
		e = e[1+n:]
	}
	return strings.Join(out, ",")
}

// operands reads what follows opcode op: its operands and their length, -1 if
// it is cut short.
func operands(op byte, e []byte) (a, b uint64, n int) {
	fixed := func(size int, signed bool) (uint64, uint64, int) {
		if len(e) < size {
			return 0, 0, -1
		}
		var buf [8]byte
		copy(buf[:], e[:size])
		v := binary.LittleEndian.Uint64(buf[:])
		if shift := 64 - 8*size; signed {
			v = uint64(int64(v<<shift) >> shift)
		}
		return v, 0, size
	}
	switch {
	case op >= cfi.DW_OP_breg0 && op <= cfi.DW_OP_breg31, op == cfi.DW_OP_consts:
		a, n = leb(e, true)
		return a, 0, n
	case op == cfi.DW_OP_constu, op == cfi.DW_OP_plus_uconst:
		a, n = leb(e, false)
		return a, 0, n
	}
	switch op {
	case cfi.DW_OP_bregx:
		if a, n = leb(e, false); n < 0 {
			return 0, 0, -1
		}
		b, m := leb(e[n:], true)
		if m < 0 {
			return 0, 0, -1
		}
		return a, b, n + m
	case cfi.DW_OP_const1u, cfi.DW_OP_pick, cfi.DW_OP_deref_size:
		return fixed(1, false)
	case cfi.DW_OP_const1s:
		return fixed(1, true)
	case cfi.DW_OP_const2u:
		return fixed(2, false)
	case cfi.DW_OP_const2s, cfi.DW_OP_skip, cfi.DW_OP_bra:
		return fixed(2, true)
	case cfi.DW_OP_const4u:
		return fixed(4, false)
	case cfi.DW_OP_const4s:
		return fixed(4, true)
	case cfi.DW_OP_const8u, cfi.DW_OP_const8s, cfi.DW_OP_addr:
		return fixed(8, false)
	}
	return 0, 0, 0
}

// leb reads a LEB128 number of at most 64 bits and gives its length, -1 if it
// does not end.
func leb(e []byte, signed bool) (v uint64, n int) {
	for shift := 0; n < len(e) && shift < 64; shift += 7 {
		c := e[n]
		n++
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			if shift += 7; signed && c&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			return v, n
		}
	}
	return 0, -1
}

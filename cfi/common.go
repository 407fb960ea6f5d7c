package cfi

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
)

// CommonRow is a row of x86-64 in the form of nearly all rows. The CFA is a register plus a distance. The
// return address is in the word below the CFA. Saved registers, if any, are in words below that.
type CommonRow struct {
	Reg  uint8  // base register of the CFA, DWARF number
	Fell bool   // Off changed to 16 from more than 24 in one step: see unwind/amd64/thunk.go
	Off  uint64 // bytes, below 1<<14
	// four bits for register n, from bit 4*n on: it is saved that many words below the CFA; 0: no rule
	Words uint64
}

// Bounds of a common program. Longer ones, and those that remember more, are left to Machine.Row.
const (
	maxCommonCode  = 1024 // bytes
	maxCommonDepth = 4    // remembered rows
)

// commonInitial are the initial rules of common rows: def_cfa rsp + 8, the return address
// at CFA - 8.
var commonInitial = [...]byte{DW_CFA_def_cfa, 7, 8, DW_CFA_offset | AMD64RA, 1}

// isCommon reports whether FDEs of a CIE may have common rows: its data and initial instructions are those
// that compilers write.
func (c *cie) isCommon(initial []byte) bool {
	if c.signal || c.ra != AMD64RA || c.codeAlign != 1 || c.dataAlign != -8 || len(initial) < len(commonInitial) {
		return false
	}
	for i, op := range initial {
		want := byte(DW_CFA_nop)
		if i < len(commonInitial) {
			want = commonInitial[i]
		}
		if op != want {
			return false
		}
	}
	return true
}

// CommonRow finds the row at pc if it is a common one and all records have been read; otherwise it returns
// false and leaves row unchanged. If it returns true, Machine.Row gives the same row. CommonRow is meant for
// return addresses, which differ in each stack: it is faster, since it keeps only four bits for a register.
func (t *Table) CommonRow(pc uint64, row *CommonRow) bool {
	if !t.read.Load() || t.arch != context.ArchAMD64 {
		return false
	}
	i := t.search(pc)
	if i < 0 {
		return false
	}
	f := &t.fdes[i]
	c := &t.cies[f.cie]
	if !c.common || f.lo >= 1<<63 { // above, locations may wrap
		return false
	}
	data := t.sectionOf(c).data
	if f.insEnd-f.insAt > maxCommonCode || f.insAt > f.insEnd || uint64(f.insEnd) > uint64(len(data)) {
		return false
	}
	return row.run(data[f.insAt:f.insEnd], pc-f.lo)
}

// run executes an FDE's program up to the row that contains the address at offset into.
func (row *CommonRow) run(code []byte, into uint64) bool {
	var kept [maxCommonDepth]CommonRow
	depth, at := 0, uint64(0) // at: bytes behind the beginning
	// off holds the CFA's offset in its low 16 bits, and the offset before that one in the next 16.
	reg, off, words := uint8(7), uint64(8), uint64(0)
loop:
	for i := 0; i < len(code); {
		op, low := code[i], uint64(code[i]&0x3f)
		i++
		switch op & 0xc0 {
		case DW_CFA_advance_loc:
			if at += low; at > into {
				break loop
			}
			continue
		case DW_CFA_offset:
			if i == len(code) || low > 15 || code[i]-1 > 14 {
				return false
			}
			words = words&^(15<<(4*low)) | uint64(code[i])<<(4*low)
			i++
			continue
		case DW_CFA_restore:
			if low > 15 {
				return false
			}
			words &^= 15 << (4 * low)
			continue
		}
		switch op {
		case DW_CFA_nop:
			continue
		case DW_CFA_remember_state:
			if depth == maxCommonDepth {
				return false
			}
			kept[depth] = CommonRow{reg, false, off, words}
			depth++
			continue
		case DW_CFA_restore_state:
			if depth--; depth < 0 {
				return false
			}
			k := &kept[depth]
			reg, off, words = k.Reg, k.Off, k.Words
			continue
		case DW_CFA_def_cfa, DW_CFA_def_cfa_register:
			if i == len(code) || code[i] >= 0x80 {
				return false
			}
			reg = code[i]
			if i++; op == DW_CFA_def_cfa_register {
				continue
			}
			fallthrough
		case DW_CFA_def_cfa_offset: // of one byte or of two
			if i == len(code) {
				return false
			}
			off = off<<16 | uint64(code[i])
			if i++; off&0x80 != 0 {
				if i == len(code) || code[i] >= 0x80 {
					return false
				}
				off = off&^0x80 | uint64(code[i])<<7
				i++
			}
			continue
		}
		var delta, size uint64
		rest := code[i:]
		switch {
		case op == DW_CFA_advance_loc1 && len(rest) >= 1:
			delta, size = uint64(rest[0]), 1
		case op == DW_CFA_advance_loc2 && len(rest) >= 2:
			delta, size = uint64(binary.LittleEndian.Uint16(rest)), 2
		case op == DW_CFA_advance_loc4 && len(rest) >= 4:
			delta, size = uint64(binary.LittleEndian.Uint32(rest)), 4
		case op == DW_CFA_GNU_args_size && len(rest) >= 1 && rest[0] < 0x80:
			size = 1
		default:
			return false
		}
		if at += delta; at > into {
			break loop
		}
		i += int(size)
	}
	row.Reg, row.Off, row.Words = reg, off&0xffff, words
	row.Fell = row.Off == 16 && off>>16&0xffff > 24
	return true
}

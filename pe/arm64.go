package pe

import (
	"encoding/binary"
	"fmt"
)

// ARM64 unwind data.
//
// Sources: Microsoft, "ARM64 exception handling" (packed and .xdata records,
// unwind codes); dotnet/runtime src/coreclr/unwinder/arm64/unwinder.cpp for
// the codes 0xE8-0xEC and for what a skipped code counts.
//
// Glossary. A *packed* entry is a .pdata word that describes a canonical
// prolog and epilog; any other points to an .xdata record. A *code* is one
// unwind code of 1 to 5 bytes; the *codes* of a prolog stand in the order in
// which they are undone. A *scope* says where one epilog begins and at which
// byte of the codes. A *fragment* is a part of a function whose prolog ran
// elsewhere: its codes up to end_c are its own, those after are its host's.
//
// Strategy: a packed word is expanded into the codes of its prolog and its
// epilog, so that everything behind (counting, running, printing) knows codes
// only. Decoding allocates nothing and reports faults by value.
//
// Known gaps: SVE codes (alloc_z, save_zreg, save_preg) and trap_frame are
// recognised and refused.

// ARM64Reason says why ARM64 unwind data is refused.
type ARM64Reason uint8

const (
	ARM64OK              ARM64Reason = iota
	ARM64BadRecord                   // the record's bytes are not in the image
	ARM64BadVersion                  // an .xdata version other than 0
	ARM64BadFlag                     // .pdata flag 3 is reserved
	ARM64BadRegI                     // packed RegI above 10
	ARM64BadRegF                     // packed RegF with no meaning
	ARM64BadFrameSize                // packed frame smaller than what it saves
	ARM64BadCode                     // a reserved or undefined unwind code
	ARM64Truncated                   // a code goes on past the codes' end
	ARM64NoEnd                       // the codes have no end
	ARM64BadEpilogIndex              // an epilog's first code lies past the codes
	ARM64BadEpilogOffset             // an epilog begins outside the function
	ARM64BadRegisters                // a register pair or save_next run goes past the last register
	ARM64BadSequence                 // save_next before a code that saves no pair
	ARM64Outside                     // the instruction is not inside the function
	ARM64AllocZ                      // unsupported: alloc_z (SVE)
	ARM64SaveSVE                     // unsupported: save_zreg or save_preg (SVE)
	ARM64TrapFrame                   // unsupported: trap_frame
)

var arm64Reasons = [...]string{"ok", "record outside the image", "unknown version", "reserved flag", "RegI above 10", "bad RegF",
	"frame size below the saved registers", "reserved unwind code", "truncated unwind code", "no end code", "epilog index past the codes",
	"epilog outside the function", "register past the last", "save_next without a register pair", "instruction outside the function",
	"unsupported: alloc_z (SVE)", "unsupported: save_zreg/save_preg (SVE)", "unsupported: trap_frame"}

func (r ARM64Reason) String() string {
	if int(r) < len(arm64Reasons) {
		return arm64Reasons[r]
	}
	return "reason?"
}

// Unsupported reports whether the data is well formed but of a kind that is
// not read.
func (r ARM64Reason) Unsupported() bool { return r >= ARM64AllocZ && r <= ARM64TrapFrame }

// ARM64Fault is a reason with the place of the value that is refused. Reason
// ARM64OK means no fault. It is returned by value, since an error interface
// would allocate on the walk's path.
type ARM64Fault struct {
	Reason ARM64Reason
	Offset uint32 // bytes from the record's begin (.xdata), from the first code (codes), 0 for a packed word
	Value  uint32 // the value found there
}

// OK reports whether there is no fault.
func (f ARM64Fault) OK() bool { return f.Reason == ARM64OK }

// Err returns nil or the fault as an error that names structure and rva.
func (f ARM64Fault) Err(structure string, rva uint32) error {
	if f.OK() {
		return nil
	}
	return &ARM64Error{Structure: structure, RVA: rva, Fault: f}
}

// ARM64Error is an ARM64Fault with the structure it is in.
type ARM64Error struct {
	Structure string // "pdata", "xdata", "codes"
	RVA       uint32 // where the structure lies
	Fault     ARM64Fault
}

func (e *ARM64Error) Error() string {
	return fmt.Sprintf("pe: arm64 %s at rva %#x, offset %#x: %s (value %#x)", e.Structure, e.RVA, e.Fault.Offset, e.Fault.Reason, e.Fault.Value)
}

// ARM64Function is one .pdata entry.
type ARM64Function struct {
	Begin uint32 // RVA of the first instruction
	Data  uint32 // packed word, or RVA of the .xdata record
}

// Packed reports whether Data is a packed word.
func (f ARM64Function) Packed() bool { return f.Data&3 != 0 }

// ARM64EntrySize is the size of a .pdata entry, bytes.
const ARM64EntrySize = 8

// ARM64Entry reads entry i of a .pdata table. i must be below
// len(pdata)/ARM64EntrySize.
func ARM64Entry(pdata []byte, i int) ARM64Function {
	b := pdata[i*ARM64EntrySize:]
	_ = b[7]
	return ARM64Function{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}
}

// ARM64Find returns the index of the last entry of a sorted .pdata table that
// begins at or before rva, or -1. Whether it covers rva only its length says.
func ARM64Find(pdata []byte, rva uint32) int {
	lo, hi := 0, len(pdata)/ARM64EntrySize
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if binary.LittleEndian.Uint32(pdata[mid*ARM64EntrySize:]) <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// ARM64Buffer holds the codes of one expanded packed word.
type ARM64Buffer [64]byte

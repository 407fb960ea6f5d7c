package amd64

import (
	"encoding/binary"
	"fmt"
)

// Reason is the reason why unwind data is refused.
type Reason uint8

const (
	OK           Reason = iota
	NoEntry             // no RUNTIME_FUNCTION covers the address: a leaf
	Short               // the bytes end before the structure does
	Outside             // an RVA outside the bytes or the size of the image
	BadRange            // a function that ends at or before its begin
	IndirectLoop        // indirect entries that lead to no function within 32
	ChainDepth          // chained information deeper than 32 links
	BadVersion          // an UNWIND_INFO version that is not known
	Version3            // unsupported: UNWIND_INFO version 3
	BadOpcode           // a reserved unwind operation
	BadOperation        // an OpInfo with no meaning for its operation
	BadOperand          // an operand extends beyond CountOfCodes
	BadFrame            // a code needs a frame register, but none is declared, or SET_FPREG_LARGE is invalid
	BadFlags            // chained information with a handler
	BadEpilog           // a version 2 epilog outside its function
	BadOrder            // prolog offsets that go up, or past SizeOfProlog
	EpilogCodes         // unsupported: a version 2 epilog that undoes more than pushes
)

var reasons = [...]string{"ok", "no entry", "bytes end too early",
	"RVA outside the image", "ends before it begins",
	"indirect entries without end", "chain deeper than 32", "unknown version",
	"unsupported: version 3", "reserved unwind operation",
	"operation info without meaning", "operand past CountOfCodes",
	"frame register code without frame register", "chained and with handler",
	"epilog outside its function", "prolog offsets out of order",
	"unsupported: epilog that undoes more than pushes"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "reason?"
}

// Unsupported reports whether the data is well formed but of a kind that is
// not read.
func (r Reason) Unsupported() bool { return r == Version3 || r == EpilogCodes }

// Walkable reports whether a walk ignores the reason. Windows does not check these
// either: ntdll.dll itself has prologs whose codes are out of order.
func (r Reason) Walkable() bool {
	switch r {
	case BadRange, BadFlags, BadEpilog, BadOrder:
		return true
	}
	return false
}

// Fault is a reason with the place of the value that is refused. Reason OK
// means no fault. It is returned by value, since an error interface would
// allocate on the walk's path.
type Fault struct {
	Reason Reason
	Offset uint32 // bytes from the start of the structure
	Value  uint32 // the value found there
}

// OK reports whether there is no fault.
func (f Fault) OK() bool { return f.Reason == OK }

// Err returns nil or the fault as an error that names structure and rva.
func (f Fault) Err(structure string, rva uint32) error {
	if f.OK() {
		return nil
	}
	return &Error{Structure: structure, RVA: rva, Fault: f}
}

// Error is a Fault with the structure it is in.
type Error struct {
	Structure string // "RUNTIME_FUNCTION", "UNWIND_INFO"
	RVA       uint32 // of the structure; of a RUNTIME_FUNCTION its begin
	Fault     Fault
}

func (e *Error) Error() string {
	return fmt.Sprintf("pe: amd64 %s at rva %#x, offset %#x: %s (value %#x)", e.Structure, e.RVA,
		e.Fault.Offset, e.Fault.Reason, e.Fault.Value)
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

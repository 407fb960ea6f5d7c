package image

// Slot says where the caller's value of a register is: at CFA+Off.
type Slot struct {
	Reg Reg
	Off int64 // bytes from the CFA
}

// Row says how to get from a frame, stopped before an instruction, to its
// caller. The CFA is the stack pointer the caller has after the return.
type Row struct {
	Base  Reg   // CFA = Base + Off
	Off   int64 // bytes
	Saved []Slot // general registers; in the order they were saved
	V     []Slot // vector registers
	// RA is where the return address is: a slot of the stack, or, if RAReg, still
	// in X30. On x86-64 it is always at CFA-8.
	RA     int64
	RAReg  bool
	Signed bool // the return address carries a pointer authentication code
}

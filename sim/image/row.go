package image

// Slot is where the caller's value of a register is: at CFA+Off, or, in an
// Interrupted row, at Base+Off.
type Slot struct {
	Reg Reg
	Off int64 // bytes
}

// Row is how to get from a frame, stopped before an instruction, to its
// caller. The CFA is the stack pointer the caller has after the return.
type Row struct {
	Base  Reg    // CFA = Base + Off
	Off   int64  // bytes
	Saved []Slot // general registers, in the order they were saved; never SP, never X30 of a called function
	V     []Slot // vector registers
	// RA is where the return address is: a slot of the stack, or, if RAReg, still
	// in X30. On x86-64 it is always at CFA-8.
	RA     int64
	RAReg  bool
	Signed bool // the return address carries a pointer authentication code
	// Interrupted: the caller did not call, its pc is exact. The CFA is then the
	// word at Base+Off, and Saved, V and RA are offsets from Base.
	Interrupted bool
	// Held has bit r set while general register r holds an address of the frame
	// that the function needs again (a frame pointer).
	Held uint32
}

// Rows returns one row per op: the state before it. After Build it allocates
// nothing; it must not be changed then.
func (f *Func) Rows(a Arch) []Row {
	if f.rows != nil {
		return f.rows
	}
	return traceRows(f, a)
}

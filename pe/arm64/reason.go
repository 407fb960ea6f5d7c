package arm64

import "fmt"

// Reason is the reason why ARM64 unwind data is refused.
type Reason uint8

const (
	OK              Reason = iota
	BadRecord              // the record's bytes are not in the image
	BadVersion             // an .xdata version other than 0
	BadFlag                // .pdata flag 3 is reserved
	BadRegI                // packed RegI above 10
	BadFrameSize           // packed frame smaller than what it saves
	BadCode                // a reserved or undefined unwind code
	Truncated              // a code extends beyond the codes' end
	NoEnd                  // the codes have no end
	BadEpilogIndex         // an epilog's first code lies past the codes
	BadEpilogOffset        // an epilog begins outside the function
	BadRegisters           // a register pair or save_next run goes past the last register
	Outside                // the instruction is not inside the function
	AllocZ                 // unsupported: alloc_z (SVE)
	SaveSVE                // unsupported: save_zreg or save_preg (SVE)
	TrapFrame              // unsupported: trap_frame
)

var reasons = [...]string{"ok", "record outside the image", "unknown version",
	"reserved flag", "RegI above 10",
	"frame size below the saved registers", "reserved unwind code", "truncated unwind code", "no end code",
	"epilog index past the codes",
	"epilog outside the function", "register past the last", "instruction outside the function",
	"unsupported: alloc_z (SVE)", "unsupported: save_zreg/save_preg (SVE)", "unsupported: trap_frame"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "reason?"
}

// Unsupported reports whether the data is well formed but of a kind that is
// not read.
func (r Reason) Unsupported() bool { return r >= AllocZ && r <= TrapFrame }

// Fault is a reason with the place of the value that is refused. Reason
// OK means no fault. It is returned by value, since an error interface
// would allocate on the walk's path.
type Fault struct {
	Reason Reason
	Offset uint32 // bytes from the record's start (.xdata) or the first code (codes), 0 for a packed word
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
	Structure string // "pdata", "xdata", "codes"
	RVA       uint32 // of the structure
	Fault     Fault
}

func (e *Error) Error() string {
	return fmt.Sprintf("pe: arm64 %s at rva %#x, offset %#x: %s (value %#x)", e.Structure, e.RVA,
		e.Fault.Offset, e.Fault.Reason, e.Fault.Value)
}

package cfi

// Reason is why a look-up, a row, or an expression has no result.
type Reason uint8

const (
	None            Reason = iota // it has one
	NoInfo                        // no FDE covers the pc
	BadRecord                     // a CIE or FDE is inconsistent
	BadEncoding                   // a pointer encoding that is undefined or has no meaning here
	BadOpcode                     // an unknown call frame opcode, or one that is invalid in its place
	Truncated                     // the bytes end inside a value
	BadExpression                 // unknown operation, stack underflow, a jump outside, division by zero
	TooDeep                       // more remembered states, or a deeper expression stack, than the limit
	TooManySteps                  // the limit on instructions or operations was reached
	Unreadable                    // an expression read memory that is not in the window
	UnknownRegister               // an expression used a register whose value is not known
	Unsupported                   // well formed, but of an unsupported kind
)

var reasonNames = [...]string{"none", "no-info", "bad-record", "bad-encoding", "bad-opcode", "truncated",
	"bad-expression", "too-deep", "too-many-steps", "unreadable", "unknown-register", "unsupported"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason?"
}

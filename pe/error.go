package pe

import "fmt"

// Reason says why a part of an image is refused. The zero Reason means it is
// not.
type Reason uint8

const (
	OK           Reason = iota
	NoEntry             // no RUNTIME_FUNCTION covers the address: a leaf
	NotPE               // no MZ or PE signature
	NotOptional         // the optional header is of no known kind
	Short               // the bytes end before the structure does
	Outside             // an RVA that lies in no bytes of the image
	TooLarge            // larger than is read
	NotRegular          // not a regular file
	BadMachine          // the image is for another architecture
	BadRange            // a function that ends before it begins
	IndirectLoop        // indirect entries that lead to no function within 32
	ChainDepth          // chained information deeper than 32 links
	BadVersion          // an UNWIND_INFO version that is not known
	Version3            // unsupported: UNWIND_INFO version 3
	BadOpcode           // a reserved unwind operation
	BadOperation        // an OpInfo with no meaning for its operation
	BadOperand          // an operand that goes on past CountOfCodes
	BadFrame            // a code that needs a frame register where none is declared, or SET_FPREG_LARGE with an offset other than 15
	BadFlags            // chained information with a handler
	BadEpilog           // a version 2 epilog outside its function
	BadOrder            // prolog offsets that go up, or past SizeOfProlog
	BadString           // a string that is not ended
	Overlaps            // an entry that overlaps the one before
	Unsorted            // an entry that begins before the one before
)

var reasons = [...]string{"ok", "no entry", "no PE signature", "unknown optional header", "bytes end too early", "RVA outside the image",
	"larger than is read", "not a regular file", "another architecture", "ends before it begins", "indirect entries without end",
	"chain deeper than 32", "unknown version", "unsupported: version 3", "reserved unwind operation", "operation info without meaning",
	"operand past CountOfCodes", "frame register code without frame register", "chained and with handler", "epilog outside its function",
	"prolog offsets out of order", "string without end", "overlaps the entry before", "begins before the entry before"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "reason?"
}

// Unsupported reports whether the data is well formed but of a kind that is
// not read.
func (r Reason) Unsupported() bool { return r == Version3 }

// FormatError says what is wrong in an image, and where.
type FormatError struct {
	Name      string // the image's name
	Structure string // "DOS header", "section table", "UNWIND_INFO" ...
	Offset    uint64 // of the structure: RVA, or file offset before sections are known
	Value     uint64 // the value that is refused
	Reason    Reason
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: pe %s at %#x: %s (value %#x)", e.Name, e.Structure, e.Offset, e.Reason, e.Value)
}

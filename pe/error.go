package pe

import "fmt"

// Reason is why a part of an image is refused. The zero Reason, OK, means that it is not.
type Reason uint8

const (
	OK          Reason = iota
	NotPE              // no MZ or PE signature
	NotOptional        // the optional header is of no known kind
	Short              // the bytes end before the structure does
	Outside            // an RVA or index outside the bytes or table of the image
	TooLarge           // larger than is read
	NotRegular         // not a regular file
	BadString          // a string that is outside the image, without end, or too long
)

var reasons = [...]string{"ok", "no PE signature", "unknown optional header",
	"bytes end too early", "RVA outside the image",
	"larger than is read", "not a regular file", "string without end"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "reason?"
}

// FormatError describes what is wrong in an image, and where.
type FormatError struct {
	Name      string // the image's name
	Structure string // "DOS header", "section table", "export directory" ...
	Offset    uint64 // of the structure: RVA, or file offset before sections are known
	Value     uint64 // the value that is refused
	Reason    Reason
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: pe %s at %#x: %s (value %#x)", e.Name, e.Structure, e.Offset, e.Reason, e.Value)
}

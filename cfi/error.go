package cfi

import "fmt"

// FormatError describes damage in one record of a section. The rest of the section is still used.
type FormatError struct {
	Section   string // .eh_frame, .eh_frame_hdr or .debug_frame
	Structure string // CIE, FDE, header, table ...
	Offset    uint64 // of the structure or value, in bytes from the section's start
	Value     uint64 // what was found there
	Reason    Reason
	Msg       string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s at offset 0x%x: %s (%s, value 0x%x)", e.Section, e.Structure,
		e.Offset, e.Msg, e.Reason, e.Value)
}

// LoadError holds the damage that Load found. Problems are the first MaxProblems.
type LoadError struct {
	Count    int // of all problems
	Problems []*FormatError
}

// MaxProblems is how many problems a LoadError stores.
const MaxProblems = 64

func (e *LoadError) Error() string {
	if e.Count == 1 {
		return e.Problems[0].Error()
	}
	return fmt.Sprintf("%v (and %d more problems)", e.Problems[0], e.Count-1)
}

// Unwrap returns the stored problems for errors.As.
func (e *LoadError) Unwrap() []error {
	out := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		out[i] = p
	}
	return out
}

func (e *LoadError) add(p *FormatError) {
	if e.Count++; len(e.Problems) < MaxProblems {
		e.Problems = append(e.Problems, p)
	}
}

// Package pdb reads names and lines of code from program databases of Windows (MSF 7.00).
//
// Sources: LLVM's documentation "The PDB File Format" (MSF, info, DBI, and module streams); the
// public headers of microsoft-pdb (cvinfo.h, dbi.h).
//
// Glossary. A *stream* is a file within the file, in blocks. A *public* is a name that other
// objects may use; it has no size. A *procedure* has a size and a readable name. A *segment* is
// the number of a section, from 1.
//
// Strategy. The file is in memory as a whole. A stream is copied when it is needed; all copies
// together have a bound, since streams of a damaged file may share their blocks.
//
// Known gaps: files whose code was moved after linking (OMAP) are refused. Types, variables, and
// inlined functions are not read, nor MSF 2.00, nor Portable PDBs (clr/metadata does).
package pdb

import "fmt"

// Reason is the reason why a file cannot be used.
type Reason uint8

const (
	NotPDB      Reason = iota + 1 // another format
	Truncated                     // something ends after its container
	TooLarge                      // a size that no file of this length has
	BadBlock                      // a block outside the file
	BadVersion                    // a version that is not known
	NoStream                      // a stream that must be there
	Unsupported                   // code was moved after linking
)

var reasons = [...]string{NotPDB: "not a PDB file of version 7", Truncated: "bytes end too early",
	TooLarge: "too large", BadBlock: "block outside the file",
	BadVersion: "unknown version", NoStream: "no such stream",
	Unsupported: "code moved after linking is not supported"}

func (r Reason) String() string {
	if int(r) < len(reasons) && reasons[r] != "" {
		return reasons[r]
	}
	return "reason?"
}

// Error describes what is wrong with which part of a file.
type Error struct {
	File, Structure string
	Value           uint64 // what was found there
	Reason          Reason
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: pdb %s: %s (value %#x)", e.File, e.Structure, e.Reason, e.Value)
}

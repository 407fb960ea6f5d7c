package managed

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
)

// Kind is the kind of code at an address according to the runtime's tables.
type Kind uint8

const (
	Method  Kind = iota // compiled code with unwind data: methods, funclets, IL stubs
	Stub                // code of the runtime without unwind data: precode, jump stubs, helpers
	Resolve             // a VSD resolve stub, which pushes one register and pops it
	// code of a precompiled image outside its functions: delay-load thunks push registers
	Thunk
	// no table contains the address: write barriers, call counting, entries from native code
	Uncharted
)

// Code is a Source's answer for an address.
type Code struct {
	Kind  Kind
	Base  uint64                // base address of RVAs
	Entry amd64.RuntimeFunction // of a Method: the entry that contains the address
	Table *amd64.Table          // of a Method: its unwind data and code; nil: read them from memory
	Keep  bool                  // the answer is valid until Forget
	// Function identifies the method. It is 0 if the Source does not know the method. It is undefined at the
	// method's first byte.
	Function clr.FunctionID

	EntryARM64 arm64.RuntimeFunction // of a Method of ARM64, in place of Entry
}

// Source finds code in the tables of a runtime, or of the system if the runtime registers its code there. It
// is called while nothing is suspended.
type Source interface {
	// Code describes the code at an address in c. It returns StopNone on success, BadInfo or Unsupported if
	// the tables are bad or unsupported, and NoInfo if no table covers the address.
	Code(at unwind.Address, c *Code) unwind.Stop
	memory.Reader
	// Arch returns the code's architecture.
	Arch() context.Arch
	// Unix reports whether functions preserve the registers of the System V ABI.
	Unix() bool
}

package managed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
)

// Kind says what the runtime's tables know of an address.
type Kind uint8

const (
	Method    Kind = iota // compiled code with unwind data: methods, funclets, IL stubs
	Stub                  // code the runtime made that has none: precode, jump stubs, helpers
	Resolve               // a VSD resolve stub, which pushes one register and pops it again
	Thunk                 // a precompiled image's code that is in no function: delay-load thunks push what they need
	Uncharted             // nothing covers the address: write barriers, call counting, entries from native code
)

// Code is what a Source says of an address.
type Code struct {
	Kind  Kind
	Base  uint64                // what RVAs are relative to
	Entry amd64.RuntimeFunction // of a Method: the entry that covers the address
	Table *amd64.Table          // of a Method: its unwind data and code; nil if they are to be read from memory
	Keep  bool                  // the answer holds until Forget

	EntryARM64 arm64.RuntimeFunction // of a Method of ARM64, in place of Entry
}

// Source finds code in the tables of a runtime, or of the system where the
// runtime registers its code there. It is asked while nothing is suspended.
type Source interface {
	// Code says what is at an address, into c. The stop is StopNone if it can
	// say; BadInfo and Unsupported are of the tables; NoInfo is for tables that
	// answer nothing.
	Code(at unwind.Address, c *Code) unwind.Stop
	memory.Reader
	// Arch is what the code is for.
	Arch() context.Arch
	// Unix reports whether functions preserve System V's registers.
	Unix() bool
}

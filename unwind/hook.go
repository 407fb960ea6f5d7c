package unwind

import "github.com/seedwalk/seedwalk/context"

// ReturnHook is code that is entered by a return instead of a call: somebody has put
// its address in the place of a return address on the stack, and hands on to the
// true one. Its unwind data assumes a call, so that it has its own return address
// in the wrong place. A walker is given the return hooks of its target: it knows none.
// One whose Off is 0 has it in the right place all the same, and is told of so that
// it can be recognised.
//
// A return hook without Code covers those whose code is not known, if they have call
// frame information. They are recognised by their outcome: a return address
// that lies in no module and no managed range, while the word at Off from it is a
// return address in managed code.
type ReturnHook struct {
	Arch context.Arch
	PE   bool   // its unwind data is a PE image's; else call frame information
	Code []byte // how it begins, which no other function does; empty: not known, see below
	Off  int64  // where the true return address is: bytes above where the unwind data has it
	Late bool   // it is there only once the return hook has called another function

	// Interrupted tells that the return hook is entered by neither: somebody has changed the
	// registers of a thread, and left where it was interrupted in the place of the return
	// address, where the unwind data has it. No call stands before that.
	Interrupted bool
}

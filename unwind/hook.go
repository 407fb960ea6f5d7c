package unwind

import "github.com/seedwalk/seedwalk/context"

// ReturnHook is code that is entered by a return instead of a call: its address was written over a return
// address on the stack, and it later returns to the true one. Its unwind data assume a call, so they find its
// return address in the wrong place. The walker's owner provides the return hooks of the target. A hook with
// Off 0 has its return address in the right place; it is listed only so that it can be recognized.
//
// A return hook without Code represents all hooks with unknown code, if they have call frame information.
// They are recognized by the result of a step: a return address outside all modules and managed ranges, while
// the word at Off from it is a return address in managed code.
type ReturnHook struct {
	Arch context.Arch
	PE   bool   // its unwind data are a PE image's; else call frame information
	Code []byte // its first bytes, unique among functions; empty: unknown, see above
	Off  int64  // position of the true return address: bytes above the one in the unwind data
	Late bool   // the true address is at Off only after the return hook has made a call

	// Interrupted means that the hook is entered neither by a call nor by a return: the registers of a thread
	// were changed, and the interrupted address is in the place of the return address, where the unwind data
	// expect it. It does not follow a call.
	Interrupted bool
}

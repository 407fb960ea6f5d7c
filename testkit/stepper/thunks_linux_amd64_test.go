package stepper

import "testing"

// thunks are builds whose returns and indirect calls go through thunks. gcc's call frame
// information has the stack pointer wrong at the return of a return thunk.
var thunks = []build{
	{"gcc return thunks", true, []string{"gcc", "-O2", "-mfunction-return=thunk"}},
	{"gcc inline return thunks", true, []string{"gcc", "-O1", "-mfunction-return=thunk-inline", "-mindirect-branch=thunk-inline"}},
	{"gcc retpolines", true, []string{"gcc", "-O2", "-mindirect-branch=thunk", "-fcf-protection=none"}},
	{"clang retpolines", false, []string{clang, "-O2", "-mretpoline"}},
}

// TestThunks walks at the instructions of return thunks and retpolines.
func TestThunks(t *testing.T) { each(t, thunks, stepped(shapes, 1000)) }

package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestOutside: a frame in no known code is doubtful, and so is all that is reached from it.
// A buffer that is full there, and single steps, say so too.
func TestOutside(t *testing.T) {
	u, s := chainTable(t), newStack()
	chain(s, 2, 0x4242)
	r := start(at(0), sp0)
	all := context.FromAMD64(r)
	stepped := unwind.Interrupted(&all)
	for range 2 {
		var f unwind.Frame
		if stop := u.Step(&stepped, s.window(), nil, &f); stop != unwind.StopNone || f.Trust.Doubtful() {
			t.Fatalf("%v, %+v", stop, f)
		}
	}
	if stepped.Trust != unwind.TrustOutside {
		t.Errorf("stepped to by %v", stepped.Trust)
	}
	for _, size := range []int{2, 8} {
		all, out := context.FromAMD64(r), make([]unwind.Frame, size)
		walked := unwind.Interrupted(&all)
		if u.Walk(&walked, s.window(), nil, out); walked.Trust != unwind.TrustOutside || out[1].Trust != unwind.TrustCFI {
			t.Errorf("room for %d: walked to by %v from %v", size, walked.Trust, out[1].Trust)
		}
	}
}

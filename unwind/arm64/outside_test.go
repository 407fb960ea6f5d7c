package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestOutside: a frame outside all known code is doubtful, and so are all frames reached from
// it: after single steps and walks, and if the buffer is full there.
func TestOutside(t *testing.T) {
	u, s := chainTable(t), newStack()
	chain(s, 2, 0x4240)
	r := start(at(0), sp0)
	all := context.FromARM64(r)
	stepped := unwind.Interrupted(&all)
	for range 2 {
		var f unwind.Frame
		stop := u.Step(&stepped, s.window(), nil, &f)
		must.True(t, stop == unwind.StopNone && !f.Trust.Doubtful(), "%v, %+v", stop, f)
	}
	expect.Equal(t, stepped.Trust, unwind.TrustOutside, "stepped to by")
	for _, size := range []int{2, 8} {
		all, out := context.FromARM64(r), make([]unwind.Frame, size)
		walked := unwind.Interrupted(&all)
		u.Walk(&walked, s.window(), nil, out)
		expect.True(t, walked.Trust == unwind.TrustOutside && out[1].Trust == unwind.TrustCFI,
			"room for %d: walked to by %v from %v", size, walked.Trust, out[1].Trust)
	}
}

// TestInterruptedNull: a return address of 0 near the stack's end ends the stack. The row of an
// interrupted instruction may be wrong, so a 0 from such a row does not end the stack.
func TestInterruptedNull(t *testing.T) {
	for _, exact := range []bool{false, true} {
		want := unwind.EndOfStack
		if exact {
			want = unwind.NullReturn
		}
		u, s := chainTable(t), newStack()
		b := unwind.Bounds{Low: stackLow, High: sp0 + 640}
		chain(s, 1, 0)
		var f unwind.Frame
		r := start(at(0), sp0)
		_, stop := stepOf(u, &r, exact, s.window(), &b, &f)
		expect.True(t, stop == want, "exact %v: a step ends by %v, want %v", exact, stop, want)
		r = start(at(0), sp0)
		n, _, stop := walkOf(u, &r, exact, unwind.TrustContext, s.window(), &b, make([]unwind.Frame, 4))
		expect.True(t, stop == want && n == 1,
			"exact %v: a walk ends by %v after %d, want %v", exact, stop, n, want)
	}
}

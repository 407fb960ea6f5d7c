package amd64

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
	chain(s, 2, 0x4242)
	r := start(at(0), sp0)
	all := context.FromAMD64(r)
	stepped := unwind.Interrupted(&all)
	for range 2 {
		var f unwind.Frame
		stop := u.Step(&stepped, s.window(), nil, &f)
		must.True(t, stop == unwind.StopNone && !f.Trust.Doubtful(), "%v, %+v", stop, f)
	}
	expect.Equal(t, stepped.Trust, unwind.TrustOutside, "stepped to by")
	for _, size := range []int{2, 8} {
		all, out := context.FromAMD64(r), make([]unwind.Frame, size)
		walked := unwind.Interrupted(&all)
		u.Walk(&walked, s.window(), nil, out)
		expect.True(t, walked.Trust == unwind.TrustOutside && out[1].Trust == unwind.TrustCFI,
			"room for %d: walked to by %v from %v", size, walked.Trust, out[1].Trust)
	}
}

// TestOutsideInterrupted: a frame that a signal interrupted outside all known code is doubtful,
// except after a call through a null pointer.
func TestOutsideInterrupted(t *testing.T) {
	for ip, want := range map[uint64]unwind.Trust{0x10: unwind.TrustCFI, nullPage: unwind.TrustOutside} {
		u, s := unwinder(makeTable(t, 1, fn{program: []byte{0x0e, 16}, signal: true})), newStack()
		s.set(sp0+8, ip)
		all, f := context.FromAMD64(start(at(0), sp0)), unwind.Frame{}
		state := unwind.Interrupted(&all)
		stop := u.Step(&state, s.window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && state.Exact && state.Trust == want,
			"%#x: %v, exact %v by %v, want %v", ip, stop, state.Exact, state.Trust, want)
	}
}

// TestSideNull: a return address of 0 is no frame, by whatever row, unless a signal has
// interrupted a call to 0.
func TestSideNull(t *testing.T) {
	for _, signal := range []bool{false, true} {
		want := unwind.NullReturn
		if signal {
			want = unwind.StopNone
		}
		u, s := unwinder(makeTable(t, 1, fn{program: []byte{0x0c, 10, 16}, signal: signal})), newStack()
		r := start(at(0), sp0)
		r.GPR[context.R10] = sp0
		s.set(sp0+8, 0)
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.window(), nil, &f)
		expect.True(t, stop == want, "signal %v: %v, want %v", signal, stop, want)
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

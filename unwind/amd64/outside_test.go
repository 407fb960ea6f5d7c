package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestOutsideInterrupted: a frame that a signal interrupted outside all known code is doubtful,
// except after a call through a null pointer.
func TestOutsideInterrupted(t *testing.T) {
	for ip, want := range map[uint64]unwind.Trust{0x10: unwind.TrustCFI, nullPage: unwind.TrustOutside} {
		u, s := unwinder(makeTable(t, 1, fn{Program: []byte{0x0e, 16}, Signal: true})), newStack()
		s.Set(sp0+8, ip)
		all, f := context.FromAMD64(start(at(0), sp0)), unwind.Frame{}
		state := unwind.Interrupted(&all)
		stop := u.Step(&state, s.Window(), nil, &f)
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
		u, s := unwinder(makeTable(t, 1, fn{Program: []byte{0x0c, 10, 16}, Signal: signal})), newStack()
		r := start(at(0), sp0)
		r.GPR[context.R10] = sp0
		s.Set(sp0+8, 0)
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
		expect.True(t, stop == want, "signal %v: %v, want %v", signal, stop, want)
	}
}

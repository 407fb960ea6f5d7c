package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// The stub is known by its first bytes, whatever stands above its frame: a
// stale return address of a module there would otherwise be a wrong frame.
func TestHijackStubByItsPushes(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   []byte
		ip, sp uint64
	}{
		{"the stub", hijackPushes, jitIP, sp0 + 16},
		{"another function", []byte{0x55, 0x53, 0x41, 0x57}, at(1), sp0 + 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			// rbx at CFA-24 by the rules: CFA-16 from the true one.
			rules := makeTable(t, 1, fn{program: []byte{0x0e, 24, 0x80 | 3, 3}}, fn{program: []byte{0x07, 16}}).At(0)
			image := codeTable(t, c.code).At(0)
			both := *rules
			both.ELF = image.ELF
			table := module.NewTable(1, []module.Module{both}, []module.Range{{Start: jitLo, End: jitHi}})
			u := unwinder(table)
			s, r := newStack(), start(at(0), sp0)
			s.set(sp0+16, at(1)) // stale: a module's address
			s.set(sp0+8, jitIP)
			var f unwind.Frame
			if _, stop := u.Step(&r, true, s.window(), nil, &f); stop != unwind.StopNone {
				t.Fatal(stop)
			}
			if r.RIP != c.ip || r.SP() != c.sp || f.CFA != c.sp || r.GPR[context.RBX] != s.word(sp0) {
				t.Errorf("at %#x/%#x, CFA %#x, rbx %#x", r.RIP, r.SP(), f.CFA, r.GPR[context.RBX])
			}
		})
	}
}

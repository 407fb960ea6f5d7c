package arm64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// Return addresses that somebody has replaced: see unwind.Landing. Steps need not
// know them here. A function of ARM64 stores its return address itself, as a
// landing does, into a frame record like any other; whoever replaced the address
// writes the true one there. So the unwind data is right, and a landing only has
// to be recognised.

// SetLandings makes l what is known of replaced return addresses.
func (u *Unwinder) SetLandings(l []unwind.Landing) { u.landings = l }

// maxLandingCode is how much of a function's code is compared with landings.
const maxLandingCode = 32

// InLanding reports whether an address stands in a landing of an ELF image. It
// interprets unwind data: not for every frame of a walk.
func (u *Unwinder) InLanding(a unwind.Address) bool {
	addr := a.Lookup()
	i := u.table.Find(addr)
	if i < 0 {
		return false
	}
	m := u.table.At(i)
	if m.CFI == nil || !m.SystemV() || u.machine.Row(m.CFI, addr-m.Bias, &u.row) != cfi.None {
		return false
	}
	code := m.Bytes(u.row.FDE.Lo+m.Bias, maxLandingCode)
	for i := range u.landings {
		if l := &u.landings[i]; l.Arch == context.ArchARM64 && !l.PE && len(l.Code) != 0 && bytes.HasPrefix(code, l.Code) {
			return true
		}
	}
	return false
}

package arm64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// Return addresses that somebody has replaced: see unwind.ReturnHook. Steps need not
// know them here. A function of ARM64 stores its return address itself, as a
// return hook does, into a frame record like any other; whoever replaced the address
// writes the true one there. So the unwind data is right, and a return hook only has
// to be recognised.

// SetReturnHooks makes l what is known of replaced return addresses.
func (u *Unwinder) SetReturnHooks(l []unwind.ReturnHook) { u.hooks = l }

// maxHookCode is how much of a function's code is compared with return hooks.
const maxHookCode = 32

// InReturnHook reports whether an address is in a return hook of an ELF image. It
// interprets unwind data: not for every frame of a walk.
func (u *Unwinder) InReturnHook(a unwind.Address) bool {
	addr := a.Lookup()
	i := u.table.Find(addr)
	if i < 0 {
		return false
	}
	m := u.table.At(i)
	if m.CFI == nil || !m.SystemV() || u.machine.Row(m.CFI, addr-m.Bias, &u.row) != cfi.None {
		return false
	}
	code := m.Bytes(u.row.FDE.Lo+m.Bias, maxHookCode)
	for i := range u.hooks {
		if l := &u.hooks[i]; l.Arch == context.ArchARM64 && !l.PE && len(l.Code) != 0 && bytes.HasPrefix(code, l.Code) {
			return true
		}
	}
	return false
}

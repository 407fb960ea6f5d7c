package arm64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// Return addresses that were replaced: see unwind.ReturnHook. Steps need no knowledge of them on ARM64. A
// return hook stores its return address itself, into a frame record like any other function's, and the true
// address is then written there. So the unwind data are right, and a return hook only has to be recognized.

// SetReturnHooks sets the known return hooks.
func (u *Unwinder) SetReturnHooks(l []unwind.ReturnHook) { u.hooks = l }

// maxHookCode is how many bytes of a function are compared with return hooks.
const maxHookCode = 32

// InReturnHook reports whether an address is in a return hook of an ELF image. It interprets unwind data, so
// it is too slow for every frame of a walk.
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
		if l := &u.hooks[i]; l.Arch == context.ArchARM64 && !l.PE && len(l.Code) != 0 &&
			bytes.HasPrefix(code, l.Code) {
			return true
		}
	}
	return false
}

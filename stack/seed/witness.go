package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// longestFrame bounds the part of a managed frame that is searched, in bytes.
const longestFrame = 4096

// witnessed reports whether the stack agrees with a seed. Only ARM64 has witnesses: its link register can be
// a true return address in a function that has not been called from there.
//
//   - A method has a frame record at or above its stack pointer, and x29 points to it.
//   - If the topmost function has its return address in the link register, the address is not on the stack up
//     to that record. Otherwise another function has saved it, and the walk has missed that function's frame.
func witnessed(s *unwind.State, mem *memory.Window, b *unwind.Bounds, frames []unwind.Frame) bool {
	if s.Regs.Arch != context.ArchARM64 {
		return true
	}
	sp, record := s.Regs.SP(), s.Regs.FP()
	if record < sp || record&7 != 0 || foreign(record, b) {
		return false
	}
	inRegister := len(frames) == 1 && frames[0].SP == sp
	for at := sp; inRegister && at < min(record+16, sp+longestFrame); at += 8 {
		if v, ok := mem.Word(at); ok && v == s.Regs.IP() {
			return false
		}
	}
	return true
}

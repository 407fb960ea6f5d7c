package arm64

import "github.com/seedwalk/seedwalk/module"

// Where stacks begin without unwind data that says so: what the kernel enters has no
// caller.

// maxRootBytes bounds an entry point's own code, bytes.
const maxRootBytes = 128

// isRoot reports whether a frame is the image's entry point's: its code has ended the
// chain of frame records, or the kernel has, and no function that returns stands
// between.
func isRoot(m *module.Module, regs *Registers) bool {
	if m == nil || !m.SystemV() || !known(regs, regFP) || regs.X[regFP] != 0 {
		return false
	}
	at, ok := m.Entry()
	if !ok || regs.PC-at >= maxRootBytes {
		return false
	}
	for ; at < regs.PC; at += 4 {
		if w, ok := codeWord(m, at, nil); !ok || w&0xfffffc1f == 0xd65f0000 || w == 0 { // ret, or padding
			return false
		}
	}
	return true
}

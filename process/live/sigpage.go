package live

import (
	"encoding/binary"
	"fmt"
	"os"
)

// An emulator of ARM64 programs has no vdso: a signal handler returns to a separate page with two
// instructions, which the kernel does not name. Source: QEMU, linux-user/aarch64/signal.c, setup_sigtramp.

// sigpage is our name of the page.
const sigpage = "[sigpage]"

// sigreturn is the page's code: mov x8, #139 (rt_sigreturn); svc #0.
const sigreturn = 0xd4000001<<32 | 0xd2801168

// isSigpage reports whether a mapping is that page. Its address does not change once found.
func (g *Guest) isSigpage(m *Mapping) bool {
	const page = 4096
	if g.sigpage == 0 && m.Path == "" && m.End-m.Start == page && g.word(m.Start) == sigreturn {
		g.sigpage = m.Start
	}
	return m.Start == g.sigpage && m.Path == ""
}

// word reads a word of the process's memory, 0 if that fails.
func (g *Guest) word(addr uint64) uint64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", g.pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(addr)); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// sigpageImage is the page as an image: code without any data.
type sigpageImage struct{}

func (sigpageImage) Bytes(at uint64, n int) []byte {
	code := binary.LittleEndian.AppendUint64(nil, sigreturn)
	if at >= uint64(len(code)) {
		return nil
	}
	return code[at:min(uint64(len(code)), at+uint64(n))]
}

func (sigpageImage) CFIBase() uint64       { return 0 }
func (sigpageImage) Starts(uint64) bool    { return false }
func (sigpageImage) Entry() (uint64, bool) { return 0, false }
func (sigpageImage) SystemV() bool         { return true }

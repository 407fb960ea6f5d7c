package sampler

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// codeAt is memory that holds code at one address, and counts the reads.
type codeAt struct {
	addr  uint64
	code  []byte
	reads int
}

func (m *codeAt) ReadSome(p []byte, addr uint64) int {
	m.reads++
	if addr < m.addr || addr >= m.addr+uint64(len(m.code)) {
		return 0
	}
	return copy(p, m.code[addr-m.addr:])
}

func (m *codeAt) ReadAt(p []byte, addr uint64) bool { return m.ReadSome(p, addr) == len(p) }

// A thread is in the kernel if its leaf is directly after a system call, or at one that the kernel restarts.
func TestSyscalls(t *testing.T) {
	for _, c := range []struct {
		name string
		arch context.Arch
		code []byte
		ip   uint64
		want bool
	}{
		{"behind a syscall", context.ArchAMD64, []byte{0x90, 0x0f, 0x05, 0xc3, 0x90}, 0x1003, true},
		{"at a syscall", context.ArchAMD64, []byte{0x90, 0x90, 0x0f, 0x05, 0xc3}, 0x1002, true},
		{"in other code", context.ArchAMD64, []byte{0x0f, 0x05, 0x90, 0x90, 0xc3, 0x90}, 0x1004, false},
		{"one byte further", context.ArchAMD64, []byte{0x0f, 0x05, 0x90, 0x90, 0xc3, 0x90}, 0x1003, false},
		{"behind the last code there is", context.ArchAMD64, []byte{0x0f, 0x05}, 0x1002, true},
		{"where nothing is mapped", context.ArchAMD64, []byte{0x0f, 0x05}, 0x9000, false},
		{"at address 0", context.ArchAMD64, []byte{0x0f, 0x05}, 0, false},
		{"behind svc", context.ArchARM64, []byte{1, 0, 0, 0xd4, 0, 0, 0, 0}, 0x1004, true},
		{"at svc", context.ArchARM64, []byte{0, 0, 0, 0, 1, 0, 0, 0xd4}, 0x1004, true},
		{"another exception", context.ArchARM64, []byte{1, 0, 0x20, 0xd4, 0, 0, 0, 0}, 0x1004, false},
	} {
		m := &codeAt{addr: 0x1000, code: c.code}
		s := NewSyscalls(c.arch, m)
		if got := s.Enters(c.ip); got != c.want || s.Enters(c.ip) != c.want || m.reads != 1 {
			t.Errorf("%s: %v, %d reads", c.name, got, m.reads)
		}
		s.forget()
		s.Enters(c.ip)
		expect.True(t, m.reads == 2, "%s: not read again after forget", c.name)
	}
}

// Only the leaf of an interrupted thread is marked, and only if the clock can hit the kernel.
func TestMarkKernel(t *testing.T) {
	e := Base{Syscalls: NewSyscalls(context.ArchAMD64,
		&codeAt{addr: 0x1000, code: []byte{0x0f, 0x05, 0x90, 0x90, 0x90, 0x90}})}
	for _, c := range []struct {
		name string
		in   walk.KernelState
		leaf wire.Frame
		want bool
	}{
		{"blocked", walk.InKernel, wire.Frame{IP: 0x1004, Flags: wire.FrameExact}, true},
		{"behind a call", walk.MaybeInKernel, wire.Frame{IP: 0x1002, Flags: wire.FrameExact}, true},
		{"elsewhere", walk.MaybeInKernel, wire.Frame{IP: 0x1004, Flags: wire.FrameExact}, false},
		{"a clock of user code", walk.UserOnly, wire.Frame{IP: 0x1002, Flags: wire.FrameExact}, false},
		{"a return address", walk.InKernel, wire.Frame{IP: 0x1002}, false},
		{"managed code", walk.InKernel,
			wire.Frame{IP: 0x1002, Flags: wire.FrameExact, Kind: unwind.KindManaged}, false},
		{"a gap", walk.InKernel, wire.Frame{Kind: unwind.KindGap}, false},
	} {
		frames := []wire.Frame{c.leaf, {IP: 0x1002, Flags: wire.FrameExact}}
		e.markKernel(c.in, frames)
		got := frames[0].Flags&wire.FrameKernel != 0
		expect.True(t, got == c.want && frames[1].Flags&wire.FrameKernel == 0, "%s: %v", c.name, got)
	}
	e.markKernel(walk.InKernel, nil)
}

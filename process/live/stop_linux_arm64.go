package live

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
)

const userRegs = context.UserRegsARM64

// noteTLS is NT_ARM_TLS (uapi linux/elf.h): tpidr_el0, followed by tpidr2_el0 on later kernels.
const noteTLS = 0x401

// stoodOf reads the thread pointer. The kernel no longer knows the system call of a stopped thread
// (arch/arm64/kernel/signal.c, do_signal): the instruction at its pc shows it.
func stoodOf(tid int, _ []byte) Stood {
	var b [64]byte
	if n, e := regSet(tid, noteTLS, b[:]); e != 0 || n < 8 {
		return Stood{Call: -1}
	}
	return Stood{Base: binary.LittleEndian.Uint64(b[:]), Call: -1}
}

package live

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
)

const userRegs = context.UserRegsAMD64

// Offsets of orig_rax and fs_base in user_regs_struct.
const (
	origRAX = 15 * 8
	fsBase  = 21 * 8
)

// stoodOf reads the other properties from a whole user_regs_struct.
func stoodOf(_ int, regs []byte) Stood {
	return Stood{Base: binary.LittleEndian.Uint64(regs[fsBase:]),
		Call: int64(binary.LittleEndian.Uint64(regs[origRAX:]))}
}

package pe

// ARM64Op is the kind of an ARM64 unwind code, named as Microsoft does.
type ARM64Op uint8

const (
	ARM64AllocS ARM64Op = iota
	ARM64SaveR19R20X
	ARM64SaveFPLR
	ARM64SaveFPLRX
	ARM64AllocM
	ARM64SaveRegP
	ARM64SaveRegPX
	ARM64SaveReg
	ARM64SaveRegX
	ARM64SaveLRPair
	ARM64SaveFRegP
	ARM64SaveFRegPX
	ARM64SaveFReg
	ARM64SaveFRegX
	ARM64OpAllocZ
	ARM64AllocL
	ARM64SetFP
	ARM64AddFP
	ARM64Nop
	ARM64End
	ARM64EndC
	ARM64SaveNext
	ARM64SaveAnyReg
	ARM64OpTrapFrame
	ARM64MachineFrame
	ARM64Context
	ARM64ECContext
	ARM64ClearUnwoundToCall
	ARM64PACSignLR
	ARM64Reserved
)

var arm64OpNames = [...]string{"alloc_s", "save_r19r20_x", "save_fplr", "save_fplr_x", "alloc_m", "save_regp", "save_regp_x", "save_reg",
	"save_reg_x", "save_lrpair", "save_fregp", "save_fregp_x", "save_freg", "save_freg_x", "alloc_z", "alloc_l", "set_fp", "add_fp", "nop",
	"end", "end_c", "save_next", "save_any_reg", "trap_frame", "machine_frame", "context", "ec_context", "clear_unwound_to_call",
	"pac_sign_lr", "reserved"}

func (o ARM64Op) String() string {
	if int(o) < len(arm64OpNames) {
		return arm64OpNames[o]
	}
	return "op?"
}

// ARM64NoRegister is ARM64Code.Reg2 of a code that saves one register.
const ARM64NoRegister = 0xff

// ARM64Code is one decoded unwind code.
type ARM64Code struct {
	Op     ARM64Op
	Size   uint8  // bytes
	Saves  bool   // the code saves Reg, and Reg2 unless that is ARM64NoRegister
	Vector bool   // Reg and Reg2 are d or q registers, else x registers
	Quad   bool   // 16 bytes are saved for each register, else 8
	Pre    bool   // pre-indexed: the save lowered sp by Off and stored at the new sp
	Reg    uint8  // 0-30, or 0-31 if Vector
	Reg2   uint8  // stored behind Reg
	Off    uint32 // bytes: size of an allocation, offset from sp of a save, from sp of x29 for add_fp
}

// Zero reports whether the code stands for no instruction.
func (c *ARM64Code) Zero() bool { return c.Op >= ARM64OpTrapFrame && c.Op <= ARM64ClearUnwoundToCall }

// Last reports whether the code ends the counting of instructions.
func (c *ARM64Code) Last() bool { return c.Op == ARM64End || c.Op == ARM64EndC }

// CanSaveNext reports whether n more pairs of registers can follow the one that
// the code saves: x registers up to x30, vector registers up to the last.
func (c *ARM64Code) CanSaveNext(n int) bool {
	last := 30
	if c.Vector {
		last = 31
	}
	return c.Saves && c.Reg2 != ARM64NoRegister && c.Op != ARM64SaveLRPair && int(c.Reg2)+2*n <= last
}

// arm64Sizes are the sizes of the codes 0xE0-0xFF, bytes.
var arm64Sizes = [32]uint8{4, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 1, 1, 1, 1}

func arm64Size(first uint8) uint8 {
	switch {
	case first < 0xc0:
		return 1
	case first < 0xe0:
		return 2
	}
	return arm64Sizes[first-0xe0]
}

// DecodeARM64Code decodes the code at the begin of b. A code with a reserved
// first byte is returned as ARM64Reserved with its size and ARM64BadCode.
func DecodeARM64Code(b []byte) (ARM64Code, ARM64Reason) {
	if len(b) == 0 {
		return ARM64Code{}, ARM64NoEnd
	}
	c := ARM64Code{Size: arm64Size(b[0]), Reg2: ARM64NoRegister}
	if len(b) < int(c.Size) {
		return c, ARM64Truncated
	}
	switch {
	case b[0] < 0xc0:
		return c, c.decodeShort(b[0])
	case b[0] < 0xe0:
		return c, c.decodePair(uint32(b[0])<<8 | uint32(b[1]))
	}
	return c, c.decodeLong(b)
}

func (c *ARM64Code) decodeShort(b uint8) ARM64Reason {
	z := uint32(b & 0x3f)
	switch b >> 5 {
	case 0:
		c.Op, c.Off = ARM64AllocS, 16*(z&31)
	case 1:
		c.save(ARM64SaveR19R20X, 19, 20, 8*(z&31))
		c.Pre = true
	case 2, 3:
		c.save(ARM64SaveFPLR, 29, 30, 8*z)
	default:
		c.save(ARM64SaveFPLRX, 29, 30, 8*(z+1))
		c.Pre = true
	}
	return ARM64OK
}

func (c *ARM64Code) save(op ARM64Op, reg, reg2 uint8, off uint32) {
	c.Op, c.Saves, c.Reg, c.Reg2, c.Off = op, true, reg, reg2, off
}

// decodePair decodes the two-byte codes 0xC0-0xDF, w being both bytes, the
// first one high.
func (c *ARM64Code) decodePair(w uint32) ARM64Reason {
	z, x := w&0x3f, uint8(w>>6&15)
	switch w >> 8 & 0x1f {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		c.Op, c.Off = ARM64AllocM, 16*(w&0x7ff)
	case 8, 9, 10, 11:
		c.save(ARM64SaveRegP, 19+x, 20+x, 8*z)
	case 12, 13, 14, 15:
		c.save(ARM64SaveRegPX, 19+x, 20+x, 8*(z+1))
		c.Pre = true
	case 16, 17, 18, 19:
		c.save(ARM64SaveReg, 19+x, ARM64NoRegister, 8*z)
	case 20, 21:
		c.save(ARM64SaveRegX, 19+uint8(w>>5&15), ARM64NoRegister, 8*(w&31+1))
		c.Pre = true
	case 22, 23:
		c.save(ARM64SaveLRPair, 19+2*(x&7), 30, 8*z)
	case 31:
		c.Op = ARM64OpAllocZ
		return ARM64AllocZ
	default:
		return c.decodeVector(w)
	}
	return c.checkX()
}

func (c *ARM64Code) decodeVector(w uint32) ARM64Reason {
	z, x := w&0x3f, uint8(w>>6&7)
	c.Vector = true
	switch w >> 8 & 0x1f {
	case 24, 25:
		c.save(ARM64SaveFRegP, 8+x, 9+x, 8*z)
	case 26, 27:
		c.save(ARM64SaveFRegPX, 8+x, 9+x, 8*(z+1))
		c.Pre = true
	case 28, 29:
		c.save(ARM64SaveFReg, 8+x, ARM64NoRegister, 8*z)
	default:
		c.save(ARM64SaveFRegX, 8+uint8(w>>5&7), ARM64NoRegister, 8*(w&31+1))
		c.Pre = true
	}
	return ARM64OK
}

// checkX refuses an integer register past x30.
func (c *ARM64Code) checkX() ARM64Reason {
	if c.Saves && (c.Reg > 30 || c.Reg2 != ARM64NoRegister && c.Reg2 > 30) {
		return ARM64BadRegisters
	}
	return ARM64OK
}

var arm64LongOps = [...]ARM64Op{ARM64AllocL, ARM64SetFP, ARM64AddFP, ARM64Nop, ARM64End, ARM64EndC, ARM64SaveNext, ARM64SaveAnyReg,
	ARM64OpTrapFrame, ARM64MachineFrame, ARM64Context, ARM64ECContext, ARM64ClearUnwoundToCall}

func (c *ARM64Code) decodeLong(b []byte) ARM64Reason {
	c.Op = ARM64Reserved
	if i := int(b[0]) - 0xe0; i < len(arm64LongOps) {
		c.Op = arm64LongOps[i]
	} else if b[0] == 0xfc {
		c.Op = ARM64PACSignLR
	}
	switch c.Op {
	case ARM64AllocL:
		c.Off = 16 * (uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
	case ARM64AddFP:
		c.Off = 8 * uint32(b[1])
	case ARM64SaveAnyReg:
		return c.decodeAny(b[1], b[2])
	case ARM64OpTrapFrame:
		return ARM64TrapFrame
	case ARM64Reserved:
		return ARM64BadCode
	}
	return ARM64OK
}

// decodeAny decodes save_any_reg: 0pxrrrrr nnoooooo.
func (c *ARM64Code) decodeAny(b1, b2 uint8) ARM64Reason {
	kind, off, reg := b2>>6, uint32(b2&0x3f), b1&31
	switch {
	case kind == 3:
		return ARM64SaveSVE
	case b1&0x80 != 0:
		return ARM64BadCode
	}
	c.save(ARM64SaveAnyReg, reg, ARM64NoRegister, off)
	if b1&0x40 != 0 {
		c.Reg2 = reg + 1
	}
	c.Pre, c.Vector, c.Quad = b1&0x20 != 0, kind != 0, kind == 2
	if c.Pre {
		c.Off++
	}
	if c.Pre || c.Reg2 != ARM64NoRegister || c.Quad {
		c.Off *= 16
	} else {
		c.Off *= 8
	}
	if !c.Vector {
		return c.checkX()
	}
	if c.Reg2 != ARM64NoRegister && c.Reg2 > 31 {
		return ARM64BadRegisters
	}
	return ARM64OK
}

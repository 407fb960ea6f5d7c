package arm64

// Op is the kind of an ARM64 unwind code, named as Microsoft does.
type Op uint8

const (
	AllocS Op = iota
	SaveR19R20X
	SaveFPLR
	SaveFPLRX
	AllocM
	SaveRegP
	SaveRegPX
	SaveReg
	SaveRegX
	SaveLRPair
	SaveFRegP
	SaveFRegPX
	SaveFReg
	SaveFRegX
	OpAllocZ
	AllocL
	SetFP
	AddFP
	Nop
	End
	EndC
	SaveNext
	SaveAnyReg
	OpTrapFrame
	MachineFrame
	Context
	ECContext
	ClearUnwoundToCall
	PACSignLR
	Reserved
)

var opNames = [...]string{"alloc_s", "save_r19r20_x", "save_fplr", "save_fplr_x", "alloc_m",
	"save_regp", "save_regp_x", "save_reg",
	"save_reg_x", "save_lrpair", "save_fregp", "save_fregp_x", "save_freg", "save_freg_x", "alloc_z",
	"alloc_l", "set_fp", "add_fp", "nop",
	"end", "end_c", "save_next", "save_any_reg", "trap_frame", "machine_frame", "context",
	"ec_context", "clear_unwound_to_call",
	"pac_sign_lr", "reserved"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "op?"
}

// NoRegister is Code.Reg2 of a code that saves one register.
const NoRegister = 0xff

// Code is one decoded unwind code.
type Code struct {
	Op     Op
	Size   uint8  // bytes
	Saves  bool   // the code saves Reg, and Reg2 unless that is NoRegister
	Vector bool   // Reg and Reg2 are d or q registers, else x registers
	Quad   bool   // 16 bytes are saved for each register, else 8
	Pre    bool   // pre-indexed: the save lowered sp by Off and stored at the new sp
	Reg    uint8  // 0-30, or 0-31 if Vector
	Reg2   uint8  // stored at the address after Reg, or NoRegister
	Off    uint32 // bytes: size of an allocation, offset from sp of a save, from sp of x29 for add_fp
}

// Last reports whether the code is an end or an end_c.
func (c *Code) Last() bool { return c.Op == End || c.Op == EndC }

// CanSaveNext reports whether n more pairs of registers can follow the one that
// the code saves: x registers up to x30, vector registers up to the last.
func (c *Code) CanSaveNext(n int) bool {
	last := 30
	if c.Vector {
		last = 31
	}
	return c.Saves && c.Reg2 != NoRegister && c.Op != SaveLRPair && int(c.Reg2)+2*n <= last
}

// sizes are the sizes of the codes 0xE0-0xFF, bytes.
var sizes = [32]uint8{4, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 2, 3, 4, 5, 1, 1, 1, 1}

func size(first uint8) uint8 {
	switch {
	case first < 0xc0:
		return 1
	case first < 0xe0:
		return 2
	}
	return sizes[first-0xe0]
}

// DecodeCode decodes the code at the start of b. A code with a reserved
// first byte is returned as Reserved with its size and BadCode.
func DecodeCode(b []byte) (c Code, why Reason) {
	why = c.Decode(b)
	return c, why
}

// Decode is DecodeCode in place.
func (c *Code) Decode(b []byte) Reason {
	if len(b) == 0 {
		*c = Code{}
		return NoEnd
	}
	first := b[0]
	*c = Code{Size: 1, Reg2: NoRegister}
	if first < 0xc0 {
		return c.decodeShort(first)
	}
	if c.Size = size(first); len(b) < int(c.Size) {
		return Truncated
	}
	if first < 0xe0 {
		return c.decodePair(uint32(first)<<8 | uint32(b[1]))
	}
	return c.decodeLong(b)
}

func (c *Code) decodeShort(b uint8) Reason {
	z := uint32(b & 0x3f)
	switch b >> 5 {
	case 0:
		c.Op, c.Off = AllocS, 16*(z&31)
	case 1:
		c.save(SaveR19R20X, 19, 20, 8*(z&31))
		c.Pre = true
	case 2, 3:
		c.save(SaveFPLR, 29, 30, 8*z)
	default:
		c.save(SaveFPLRX, 29, 30, 8*(z+1))
		c.Pre = true
	}
	return OK
}

func (c *Code) save(op Op, reg, reg2 uint8, off uint32) {
	c.Op, c.Saves, c.Reg, c.Reg2, c.Off = op, true, reg, reg2, off
}

// decodePair decodes the two-byte codes 0xC0-0xDF. w is both bytes, the first
// one in the high half.
func (c *Code) decodePair(w uint32) Reason {
	z, x := w&0x3f, uint8(w>>6&15)
	switch w >> 8 & 0x1f {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		c.Op, c.Off = AllocM, 16*(w&0x7ff)
	case 8, 9, 10, 11:
		c.save(SaveRegP, 19+x, 20+x, 8*z)
	case 12, 13, 14, 15:
		c.save(SaveRegPX, 19+x, 20+x, 8*(z+1))
		c.Pre = true
	case 16, 17, 18, 19:
		c.save(SaveReg, 19+x, NoRegister, 8*z)
	case 20, 21:
		c.save(SaveRegX, 19+uint8(w>>5&15), NoRegister, 8*(w&31+1))
		c.Pre = true
	case 22, 23:
		c.save(SaveLRPair, 19+2*(x&7), 30, 8*z)
	case 31:
		c.Op = OpAllocZ
		return AllocZ
	default:
		return c.decodeVector(w)
	}
	return c.checkX()
}

func (c *Code) decodeVector(w uint32) Reason {
	z, x := w&0x3f, uint8(w>>6&7)
	c.Vector = true
	switch w >> 8 & 0x1f {
	case 24, 25:
		c.save(SaveFRegP, 8+x, 9+x, 8*z)
	case 26, 27:
		c.save(SaveFRegPX, 8+x, 9+x, 8*(z+1))
		c.Pre = true
	case 28, 29:
		c.save(SaveFReg, 8+x, NoRegister, 8*z)
	default:
		c.save(SaveFRegX, 8+uint8(w>>5&7), NoRegister, 8*(w&31+1))
		c.Pre = true
	}
	return OK
}

// checkX refuses an integer register past x30.
func (c *Code) checkX() Reason {
	if c.Saves && (c.Reg > 30 || c.Reg2 != NoRegister && c.Reg2 > 30) {
		return BadRegisters
	}
	return OK
}

var longOps = [...]Op{AllocL, SetFP, AddFP, Nop, End, EndC, SaveNext, SaveAnyReg,
	OpTrapFrame, MachineFrame, Context, ECContext, ClearUnwoundToCall}

func (c *Code) decodeLong(b []byte) Reason {
	c.Op = Reserved
	if i := int(b[0]) - 0xe0; i < len(longOps) {
		c.Op = longOps[i]
	} else if b[0] == 0xfc {
		c.Op = PACSignLR
	}
	switch c.Op {
	case AllocL:
		c.Off = 16 * (uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
	case AddFP:
		c.Off = 8 * uint32(b[1])
	case SaveAnyReg:
		return c.decodeAny(b[1], b[2])
	case OpTrapFrame:
		return TrapFrame
	case Reserved:
		return BadCode
	}
	return OK
}

// decodeAny decodes save_any_reg: 0pxrrrrr nnoooooo.
func (c *Code) decodeAny(b1, b2 uint8) Reason {
	kind, off, reg := b2>>6, uint32(b2&0x3f), b1&31
	switch {
	case kind == 3:
		return SaveSVE
	case b1&0x80 != 0:
		return BadCode
	}
	c.save(SaveAnyReg, reg, NoRegister, off)
	if b1&0x40 != 0 {
		c.Reg2 = reg + 1
	}
	c.Pre, c.Vector, c.Quad = b1&0x20 != 0, kind != 0, kind == 2
	if c.Pre {
		c.Off++
	}
	if c.Pre || c.Reg2 != NoRegister || c.Quad {
		c.Off *= 16
	} else {
		c.Off *= 8
	}
	if !c.Vector {
		return c.checkX()
	}
	if c.Reg2 != NoRegister && c.Reg2 > 31 {
		return BadRegisters
	}
	return OK
}

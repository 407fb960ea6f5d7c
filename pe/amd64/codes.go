package amd64

// Op is an x64 unwind operation.
type Op uint8

const (
	UWOP_PUSH_NONVOL     Op = 0
	UWOP_ALLOC_LARGE     Op = 1
	UWOP_ALLOC_SMALL     Op = 2
	UWOP_SET_FPREG       Op = 3
	UWOP_SAVE_NONVOL     Op = 4
	UWOP_SAVE_NONVOL_FAR Op = 5
	UWOP_EPILOG          Op = 6 // version 2
	UWOP_SPARE_CODE      Op = 7 // never valid
	UWOP_SAVE_XMM128     Op = 8
	UWOP_SAVE_XMM128_FAR Op = 9
	UWOP_PUSH_MACHFRAME  Op = 10
	UWOP_SET_FPREG_LARGE Op = 11 // the CLR's Unix images
)

var opNames = [...]string{"PUSH_NONVOL", "ALLOC_LARGE", "ALLOC_SMALL", "SET_FPREG",
	"SAVE_NONVOL", "SAVE_NONVOL_FAR", "EPILOG",
	"SPARE_CODE", "SAVE_XMM128", "SAVE_XMM128_FAR", "PUSH_MACHFRAME", "SET_FPREG_LARGE"}

// String returns the name without UWOP_.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "op?"
}

// Code is one decoded unwind code.
type Code struct {
	Op     Op
	Offset uint8 // CodeOffset: the prolog's bytes up to the end of the instruction
	Info   uint8 // OpInfo: a register, a scaled size, a flag
	Slots  uint8 // size in slots of two bytes, 1 to 3
	// bytes: size of a push or an allocation, offset of a save, distance of a frame register, distance of an
	// epilog from the function's end
	Operand uint32
}

// HasOperand reports whether Operand adds something to Op, Info, and the frame's offset.
func (c *Code) HasOperand() bool {
	switch c.Op {
	case UWOP_PUSH_NONVOL, UWOP_SET_FPREG, UWOP_PUSH_MACHFRAME:
		return false
	}
	return true
}

// StackDecrease returns by how many bytes the instruction lowers the stack pointer: the size of a push or of
// an allocation, otherwise 0.
func (c *Code) StackDecrease() uint64 {
	if c.Op <= UWOP_ALLOC_SMALL {
		return uint64(c.Operand)
	}
	return 0
}

// Code decodes the first code of b, a tail of i.Codes. It allocates nothing.
func (i *Info) Code(b []byte) (c Code, why Reason) {
	if len(b) < 2 {
		return c, BadOperand
	}
	c = Code{Op: Op(b[1] & 15), Offset: b[0], Info: b[1] >> 4, Slots: 1}
	switch c.Op {
	case UWOP_PUSH_NONVOL:
		c.Operand = 8
	case UWOP_ALLOC_SMALL:
		c.Operand = 8*uint32(c.Info) + 8
	case UWOP_SET_FPREG:
		if i.FrameReg == 0 {
			return c, BadFrame
		}
		c.Operand = uint32(i.FrameOffset)
	case UWOP_EPILOG:
		if i.Version != 2 {
			return c, BadOpcode
		}
		c.Operand = uint32(c.Info)<<8 | uint32(c.Offset)
	case UWOP_PUSH_MACHFRAME:
		if c.Info > 1 {
			return c, BadOperation
		}
	default:
		return i.longCode(b, c)
	}
	return c, OK
}

// longCode decodes a code of two or three slots.
func (i *Info) longCode(b []byte, c Code) (Code, Reason) {
	scale := uint32(0)
	switch c.Op {
	case UWOP_ALLOC_LARGE:
		if c.Info > 1 {
			return c, BadOperation
		}
		if c.Info == 0 {
			scale = 8
		}
	case UWOP_SAVE_NONVOL:
		scale = 8
	case UWOP_SAVE_XMM128:
		scale = 16
	case UWOP_SAVE_NONVOL_FAR, UWOP_SAVE_XMM128_FAR:
	case UWOP_SET_FPREG_LARGE:
		if !i.Unix {
			return c, BadOpcode
		}
		if i.FrameReg == 0 || i.FrameOffset != 15*16 {
			return c, BadFrame
		}
	default:
		return c, BadOpcode
	}
	return i.operand(b, c, scale)
}

// operand reads a scaled 16-bit operand, or a 32-bit one if scale is 0. That
// of SET_FPREG_LARGE counts units of 16 bytes and must stay below 4 GiB.
func (i *Info) operand(b []byte, c Code, scale uint32) (Code, Reason) {
	if scale != 0 {
		if c.Slots = 2; len(b) < 4 {
			return c, BadOperand
		}
		c.Operand = uint32(u16(b[2:])) * scale
		return c, OK
	}
	if c.Slots = 3; len(b) < 6 {
		return c, BadOperand
	}
	c.Operand = u32(b[2:])
	if c.Op == UWOP_SET_FPREG_LARGE {
		if c.Operand >= 1<<28 {
			return c, BadFrame
		}
		c.Operand *= 16
	}
	return c, OK
}

// Size is the size of a code in bytes.
func (c *Code) Size() int { return 2 * int(c.Slots) }

// Epilogs splits i.Codes into the leading EPILOG codes of version 2 (none in
// version 1) and the prolog's codes.
func (i *Info) Epilogs() (epilogs, prolog []byte) {
	n := 0
	if i.Version == 2 {
		for n+2 <= len(i.Codes) && Op(i.Codes[n+1]&15) == UWOP_EPILOG {
			n += 2
		}
	}
	return i.Codes[:n], i.Codes[n:]
}

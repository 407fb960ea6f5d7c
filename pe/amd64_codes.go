package pe

// AMD64Op is an x64 unwind operation.
type AMD64Op uint8

const (
	UWOP_PUSH_NONVOL     AMD64Op = 0
	UWOP_ALLOC_LARGE     AMD64Op = 1
	UWOP_ALLOC_SMALL     AMD64Op = 2
	UWOP_SET_FPREG       AMD64Op = 3
	UWOP_SAVE_NONVOL     AMD64Op = 4
	UWOP_SAVE_NONVOL_FAR AMD64Op = 5
	UWOP_EPILOG          AMD64Op = 6 // version 2
	UWOP_SPARE_CODE      AMD64Op = 7 // never valid
	UWOP_SAVE_XMM128     AMD64Op = 8
	UWOP_SAVE_XMM128_FAR AMD64Op = 9
	UWOP_PUSH_MACHFRAME  AMD64Op = 10
	UWOP_SET_FPREG_LARGE AMD64Op = 11 // the CLR's Unix images
)

var amd64OpNames = [...]string{"PUSH_NONVOL", "ALLOC_LARGE", "ALLOC_SMALL", "SET_FPREG", "SAVE_NONVOL", "SAVE_NONVOL_FAR", "EPILOG",
	"SPARE_CODE", "SAVE_XMM128", "SAVE_XMM128_FAR", "PUSH_MACHFRAME", "SET_FPREG_LARGE"}

// String gives the name without UWOP_.
func (o AMD64Op) String() string {
	if int(o) < len(amd64OpNames) {
		return amd64OpNames[o]
	}
	return "op?"
}

// AMD64Code is one decoded unwind code.
type AMD64Code struct {
	Op      AMD64Op
	Offset  uint8  // CodeOffset: the prolog's bytes up to the end of the instruction
	Info    uint8  // OpInfo: a register, a scaled size, a flag
	Slots   uint8  // slots of two bytes it takes, 1 to 3
	Operand uint32 // bytes: size of an allocation, offset of a save, distance of a frame register (LARGE), of an epilog from the end
}

// HasOperand reports whether Operand has a meaning.
func (c *AMD64Code) HasOperand() bool {
	switch c.Op {
	case UWOP_PUSH_NONVOL, UWOP_SET_FPREG, UWOP_PUSH_MACHFRAME:
		return false
	}
	return true
}

// Code decodes the code that b, a rest of i.Codes, begins with. It allocates
// nothing.
func (i *AMD64Info) Code(b []byte) (c AMD64Code, why Reason) {
	if len(b) < 2 {
		return c, BadOperand
	}
	c = AMD64Code{Op: AMD64Op(b[1] & 15), Offset: b[0], Info: b[1] >> 4, Slots: 1}
	switch c.Op {
	case UWOP_PUSH_NONVOL:
	case UWOP_ALLOC_SMALL:
		c.Operand = 8*uint32(c.Info) + 8
	case UWOP_SET_FPREG:
		if i.FrameReg == 0 {
			return c, BadFrame
		}
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
func (i *AMD64Info) longCode(b []byte, c AMD64Code) (AMD64Code, Reason) {
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
func (i *AMD64Info) operand(b []byte, c AMD64Code, scale uint32) (AMD64Code, Reason) {
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

// Size is the number of bytes a code takes.
func (c *AMD64Code) Size() int { return 2 * int(c.Slots) }

// Epilogs gives the leading version 2 EPILOG codes of i.Codes as bytes; those
// after them are the prolog's.
func (i *AMD64Info) Epilogs() (epilogs, prolog []byte) {
	n := 0
	if i.Version == 2 {
		for n+2 <= len(i.Codes) && AMD64Op(i.Codes[n+1]&15) == UWOP_EPILOG {
			n += 2
		}
	}
	return i.Codes[:n], i.Codes[n:]
}

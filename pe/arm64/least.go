package arm64

// LeastFrame returns the least size in bytes of a function's frame at an instruction offset bytes into it. It
// is what the prolog has allocated, also by saves that lower the stack pointer. The function may allocate
// more at run time. The result is 0 in a prolog, in an epilog, and if the unwind data are bad.
func (i *Info) LeastFrame(offset uint32) (n uint64) {
	b, part, fault := i.At(offset)
	if !fault.OK() || part != Body {
		return 0
	}
	for len(b) > 0 {
		c, why := DecodeCode(b)
		if why != OK {
			return 0
		}
		switch {
		case c.Last():
			return n
		case c.Pre, c.Op == AllocS, c.Op == AllocM, c.Op == AllocL:
			n += uint64(c.Off)
		}
		b = b[c.Size:]
	}
	return 0
}

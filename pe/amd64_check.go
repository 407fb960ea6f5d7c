package pe

// CheckAMD64 looks at everything an entry of the exception directory leads to:
// its range, its unwind information and all that is chained to it. It returns
// the first thing that is wrong, as a *FormatError; nil if nothing is.
func (f *File) CheckAMD64(fn RuntimeFunction) error {
	if fn.End <= fn.Begin {
		return f.entryError("RUNTIME_FUNCTION", fn.Begin, fn.End, BadRange)
	}
	if fn.End > f.size && f.size != 0 {
		return f.entryError("RUNTIME_FUNCTION", fn.Begin, fn.End, Outside)
	}
	fn, why := f.ResolveAMD64(fn)
	for link := 0; why == OK; link++ {
		if link > maxLinks {
			why = ChainDepth
			break
		}
		i, fault := f.AMD64Info(fn.Unwind)
		if fault.OK() {
			fault = i.Check(fn)
		}
		if !fault.OK() {
			return f.entryError("UNWIND_INFO", fn.Unwind+fault.Offset, fault.Value, fault.Reason)
		}
		if !i.Chained() {
			return nil
		}
		fn, why = f.ResolveAMD64(i.Parent)
	}
	return f.entryError("RUNTIME_FUNCTION", fn.Begin, fn.Unwind, why)
}

func (f *File) entryError(structure string, rva, value uint32, why Reason) error {
	return &FormatError{f.name, structure, uint64(rva), uint64(value), why}
}

// Check looks at the flags, every code and every epilog of fn's information.
func (i *AMD64Info) Check(fn RuntimeFunction) AMD64Fault {
	if i.Chained() && i.Flags != UNW_FLAG_CHAININFO {
		return AMD64Fault{BadFlags, 0, uint32(i.Flags)}
	}
	epilogs, prolog := i.Epilogs()
	if fault := i.checkEpilogs(epilogs, fn.End-fn.Begin); !fault.OK() {
		return fault
	}
	at, last := infoHead+len(epilogs), uint8(255)
	for len(prolog) > 0 {
		c, why := i.Code(prolog)
		if why == OK && c.Op == UWOP_EPILOG {
			why = BadOpcode // only before all others
		}
		if why == OK && (c.Offset > last || c.Offset > i.Prolog) {
			why = BadOrder
		}
		if why != OK {
			return AMD64Fault{why, uint32(at), uint32(u16(prolog))}
		}
		last = c.Offset
		at += c.Size()
		prolog = prolog[c.Size():]
	}
	return AMD64Fault{}
}

// checkEpilogs: each must lie in a function of length bytes.
func (i *AMD64Info) checkEpilogs(b []byte, length uint32) AMD64Fault {
	if len(b) == 0 {
		return AMD64Fault{}
	}
	size := uint32(b[0])
	if size == 0 || b[1]&0x10 != 0 && size > length {
		return AMD64Fault{BadEpilog, infoHead, size}
	}
	for at := 2; at < len(b); at += 2 {
		c, _ := i.Code(b[at:])
		if c.Operand > length || c.Operand != 0 && c.Operand < size {
			return AMD64Fault{BadEpilog, infoHead + uint32(at), c.Operand}
		}
	}
	return AMD64Fault{}
}

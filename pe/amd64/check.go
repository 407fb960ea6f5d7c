package amd64

// Check checks an entry of the exception directory: its range, its unwind
// information, and all information chained to it. It returns the first fault as
// an *Error, or nil.
func (t *Table) Check(fn RuntimeFunction) error {
	if fn.End <= fn.Begin {
		return Fault{BadRange, 4, fn.End}.Err("RUNTIME_FUNCTION", fn.Begin)
	}
	if fn.End > t.size && t.size != 0 {
		return Fault{Outside, 4, fn.End}.Err("RUNTIME_FUNCTION", fn.Begin)
	}
	fn, why := t.Resolve(fn)
	for link := 0; why == OK; link++ {
		if link > maxLinks {
			why = ChainDepth
			break
		}
		i, fault := t.Info(fn.Unwind)
		if fault.OK() {
			fault = i.Check(fn)
		}
		if !fault.OK() {
			return fault.Err("UNWIND_INFO", fn.Unwind)
		}
		if !i.Chained() {
			return nil
		}
		fn, why = t.Resolve(i.Parent)
	}
	return Fault{why, 8, fn.Unwind}.Err("RUNTIME_FUNCTION", fn.Begin)
}

// Check checks the flags, every code, and every epilog of fn's information.
func (i *Info) Check(fn RuntimeFunction) Fault {
	if i.Chained() && i.Flags != UNW_FLAG_CHAININFO {
		return Fault{BadFlags, 0, uint32(i.Flags)}
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
			return Fault{why, uint32(at), uint32(u16(prolog))}
		}
		last = c.Offset
		at += c.Size()
		prolog = prolog[c.Size():]
	}
	return Fault{}
}

// checkEpilogs checks that each epilog is inside a function of length bytes.
func (i *Info) checkEpilogs(b []byte, length uint32) Fault {
	if len(b) == 0 {
		return Fault{}
	}
	size := uint32(b[0])
	if size == 0 || b[1]&0x10 != 0 && size > length {
		return Fault{BadEpilog, infoHead, size}
	}
	for at := 2; at < len(b); at += 2 {
		c, _ := i.Code(b[at:])
		if c.Operand > length || c.Operand != 0 && c.Operand < size {
			return Fault{BadEpilog, infoHead + uint32(at), c.Operand}
		}
	}
	return Fault{}
}

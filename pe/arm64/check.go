package arm64

// Check checks every scope and every code. At reads only those that an instruction
// needs. Check returns the first fault.
func (i *Info) Check() Fault {
	if _, fault := i.Count(0); !fault.OK() {
		return fault
	}
	if i.E && !i.Fragment {
		if n, fault := i.epilogCount(i.Epilogs); !fault.OK() {
			return fault
		} else if n > i.Length/4 {
			return Fault{BadEpilogOffset, i.Epilogs, n}
		}
	}
	for k := range i.Scopes() {
		s := i.Scope(k)
		if s.Start >= i.Length {
			return Fault{BadEpilogOffset, s.Index, s.Start}
		}
		if _, fault := i.epilogCount(s.Index); !fault.OK() {
			return fault
		}
	}
	return i.checkCodes()
}

// checkCodes decodes the codes up to the last end. Codes after it are padding.
func (i *Info) checkCodes() Fault {
	last := len(i.Codes)
	for last > 0 && i.Codes[last-1] != 0xe4 {
		last--
	}
	for at := 0; at < last; {
		c, reason := DecodeCode(i.Codes[at:])
		if reason != OK {
			return Fault{reason, uint32(at), uint32(i.Codes[at])}
		}
		at += int(c.Size)
	}
	return Fault{}
}

package arm64

// Find finds the function at rva and decodes its unwind information into info. buf
// holds the codes if the entry is packed. found is false if no entry covers rva: a
// leaf. If the last entry before rva cannot be decoded, found is true and fault is the
// reason. Find allocates nothing.
func (t *Table) Find(rva uint32, buf *Buffer, info *Info) (begin uint32, found bool, fault Fault) {
	*info = Info{}
	i := t.Index(rva)
	if i < 0 {
		return 0, false, Fault{}
	}
	fn := t.Entry(i)
	if fault = t.decode(fn, buf, info); !fault.OK() {
		return fn.Begin, true, fault
	}
	return fn.Begin, rva-fn.Begin < info.Length, Fault{}
}

// Decode decodes an entry's unwind information.
func (t *Table) Decode(fn RuntimeFunction, buf *Buffer) (info Info, fault Fault) {
	fault = t.decode(fn, buf, &info)
	return info, fault
}

// decode fills info, which is zero.
func (t *Table) decode(fn RuntimeFunction, buf *Buffer, info *Info) Fault {
	if fn.Packed() {
		return info.decodePacked(fn.Data, buf)
	}
	n, fault := XdataSize(t.image.Tail(fn.Data, XdataHead)) // the last record of an image may be shorter
	if !fault.OK() {
		return fault
	}
	b, ok := t.image.Bytes(fn.Data, n)
	if !ok {
		return Fault{BadRecord, 0, uint32(n)}
	}
	*info, fault = DecodeXdata(b)
	return fault
}

// Starts reports whether a function begins at rva. Packed fragments do not count;
// fragments with an .xdata record are not recognized and do.
func (t *Table) Starts(rva uint32) bool {
	i := t.Index(rva)
	if i < 0 {
		return false
	}
	fn := t.Entry(i)
	return fn.Begin == rva && fn.Data&3 != FlagFragment
}

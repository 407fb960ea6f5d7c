package arm64

// Find finds the function at rva and decodes its unwind information. buf holds
// the codes if the entry is packed. found is false where no entry covers rva: a
// leaf. It allocates nothing.
func (t *Table) Find(rva uint32, buf *Buffer) (info Info, begin uint32, found bool, fault Fault) {
	i := t.Index(rva)
	if i < 0 {
		return info, 0, false, Fault{}
	}
	fn := t.Entry(i)
	info, fault = t.Decode(fn, buf)
	if !fault.OK() {
		return info, fn.Begin, true, fault
	}
	return info, fn.Begin, rva-fn.Begin < info.Length, Fault{}
}

// Decode decodes an entry's unwind information.
func (t *Table) Decode(fn RuntimeFunction, buf *Buffer) (Info, Fault) {
	if fn.Packed() {
		return DecodePackedInfo(fn.Data, buf)
	}
	n, fault := XdataSize(t.image.Tail(fn.Data, XdataHead)) // the last record of an image may be shorter
	if !fault.OK() {
		return Info{}, fault
	}
	b, ok := t.image.Bytes(fn.Data, n)
	if !ok {
		return Info{}, Fault{BadRecord, 0, uint32(n)}
	}
	return DecodeXdata(b)
}

// Starts reports whether a function begins at rva. A packed fragment says of
// itself that it does not.
func (t *Table) Starts(rva uint32) bool {
	i := t.Index(rva)
	if i < 0 {
		return false
	}
	fn := t.Entry(i)
	return fn.Begin == rva && fn.Data&3 != FlagFragment
}

package pe

// arm64Source gives parts of an image by RVA without copying them.
type arm64Source interface {
	BytesAt(rva uint32, n int) ([]byte, bool)
}

// arm64Lookup finds the entry of pdata, a sorted exception directory, that
// covers rva and decodes its unwind information. buf holds the codes if the
// entry is packed. found is false where no entry covers rva: a leaf. It
// allocates nothing.
func arm64Lookup(src arm64Source, pdata []byte, rva uint32, buf *ARM64Buffer) (info ARM64Info, begin uint32, found bool, fault ARM64Fault) {
	i := ARM64Find(pdata, rva)
	if i < 0 {
		return info, 0, false, ARM64Fault{}
	}
	fn := ARM64Entry(pdata, i)
	info, fault = arm64Decode(src, fn, buf)
	if !fault.OK() {
		return info, fn.Begin, true, fault
	}
	return info, fn.Begin, rva-fn.Begin < info.Length, ARM64Fault{}
}

// arm64Decode decodes an entry's unwind information.
func arm64Decode(src arm64Source, fn ARM64Function, buf *ARM64Buffer) (ARM64Info, ARM64Fault) {
	if fn.Packed() {
		return DecodeARM64PackedInfo(fn.Data, buf)
	}
	head, ok := src.BytesAt(fn.Data, ARM64XdataHead)
	if !ok {
		head, _ = src.BytesAt(fn.Data, 4) // the last record of an image may be shorter
	}
	n, fault := ARM64XdataSize(head)
	if !fault.OK() {
		return ARM64Info{}, fault
	}
	b, ok := src.BytesAt(fn.Data, n)
	if !ok {
		return ARM64Info{}, ARM64Fault{ARM64BadRecord, 0, uint32(n)}
	}
	return DecodeARM64Xdata(b)
}

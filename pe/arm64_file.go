package pe

// ARM64Info finds the function at rva and decodes its unwind information. buf
// holds the codes if the entry is packed. found is false where no entry covers
// rva: a leaf. It allocates nothing.
func (f *File) ARM64Info(rva uint32, buf *ARM64Buffer) (info ARM64Info, begin uint32, found bool, fault ARM64Fault) {
	return arm64Lookup(f, f.pdata, rva, buf)
}

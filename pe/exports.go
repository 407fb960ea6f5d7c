package pe

// Export is one exported name.
type Export struct {
	Name    string
	RVA     uint32 // of the function; 0 if Forward is set
	Ordinal uint32
	Forward string // "MODULE.Name" if another module implements the export, else ""
}

const exportHead = 40

// Exports returns the exported names in the order of the name table, which is
// sorted by name. If the table is damaged, the error is a *FormatError, and the
// names before the damage are returned too. Exports allocates: do not call it
// while a thread is suspended.
func (f *File) Exports() ([]Export, error) {
	d := f.dirs[dirExport]
	if d.size == 0 {
		return nil, nil
	}
	head, ok := f.BytesAt(d.rva, exportHead)
	if !ok {
		return nil, &FormatError{f.name, "export directory", uint64(d.rva), uint64(d.size), Outside}
	}
	base, functions := u32(head[16:]), u32(head[20:])
	n := u32(head[24:])
	addresses, ok1 := f.table(u32(head[28:]), functions, 4)
	names, ok2 := f.table(u32(head[32:]), n, 4)
	ordinals, ok3 := f.table(u32(head[36:]), n, 2)
	if !ok1 || !ok2 || !ok3 {
		return nil, &FormatError{f.name, "export tables", uint64(d.rva), uint64(n), Outside}
	}
	out := make([]Export, 0, n)
	room := f.textRoom()
	for i := 0; i < int(n); i++ {
		at := uint32(u16(ordinals[2*i:]))
		if at >= functions {
			return out, &FormatError{f.name, "export ordinal", uint64(d.rva), uint64(at), Outside}
		}
		e, err := f.export(d, u32(names[4*i:]), u32(addresses[4*at:]))
		if err != nil {
			return out, err
		}
		e.Ordinal = base + at
		out = append(out, e)
		if room -= len(e.Name) + len(e.Forward); room < 0 {
			return out, &FormatError{f.name, "export names", uint64(d.rva), uint64(n), TooLarge}
		}
	}
	return out, nil
}

// table returns the bytes of n entries of a size; false if they are not all in the image.
func (f *File) table(rva, n uint32, size int) ([]byte, bool) {
	if uint64(n)*uint64(size) > 1<<31 {
		return nil, false
	}
	return f.BytesAt(rva, int(n)*size)
}

// export reads one name. An address inside the export directory is the name of
// another module's export.
func (f *File) export(d directory, name, rva uint32) (e Export, err error) {
	var ok bool
	if e.Name, ok = f.text(name); !ok {
		return e, &FormatError{f.name, "export name", uint64(name), 0, BadString}
	}
	if rva-d.rva >= d.size {
		e.RVA = rva
		return e, nil
	}
	if e.Forward, ok = f.text(rva); !ok {
		return e, &FormatError{f.name, "export forwarder", uint64(rva), 0, BadString}
	}
	return e, nil
}

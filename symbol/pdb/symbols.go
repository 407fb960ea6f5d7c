package pdb

// Symbol names code.
type Symbol struct {
	RVA  uint32
	Size uint32 // bytes, 0 for a public
	Name string // of a public as the linker knows it, decorated
}

// Kinds of records (cvinfo.h).
const (
	kindThunk    = 0x1102
	kindPublic   = 0x110e
	kindLocal    = 0x110f
	kindGlobal   = 0x1110
	kindLocalID  = 0x1146
	kindGlobalID = 0x1147
)

// Symbols returns the names of code, and an *Error if some could not be read.
func (f *File) Symbols() (out []Symbol, err error) {
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	add := func(segment uint16, offset, size uint32, name []byte) {
		if rva, ok := f.rva(segment, offset); ok && len(name) > 0 && name[0] != 0 {
			out = append(out, Symbol{rva, size, text(name)})
		}
	}
	if b, e := f.c.stream(f.records, "symbol records"); e == nil {
		keep(f.each(b, func(kind uint16, b []byte) {
			if kind == kindPublic && len(b) > 10 {
				add(le.Uint16(b[8:]), le.Uint32(b[4:]), 0, b[10:])
			}
		}))
	} else {
		keep(e)
	}
	for i := range f.modules {
		symbols, _, e := f.module(&f.modules[i])
		if e == nil {
			e = f.each(symbols, func(kind uint16, b []byte) { procedure(kind, b, add) })
		}
		keep(e)
	}
	return out, err
}

// procedure adds what a record of a module names.
func procedure(kind uint16, b []byte, add func(segment uint16, offset, size uint32, name []byte)) {
	switch kind {
	case kindLocal, kindGlobal, kindLocalID, kindGlobalID:
		if len(b) > 35 {
			add(le.Uint16(b[32:]), le.Uint32(b[28:]), le.Uint32(b[12:]), b[35:])
		}
	case kindThunk:
		if len(b) > 21 {
			add(le.Uint16(b[16:]), le.Uint32(b[12:]), uint32(le.Uint16(b[18:])), b[21:])
		}
	}
}

// each calls fn with the kind and the content of each record.
func (f *File) each(b []byte, fn func(kind uint16, b []byte)) error {
	for len(b) >= 4 {
		n := int(le.Uint16(b))
		if n < 2 || n > len(b)-2 {
			return f.c.fail("symbol record", uint64(n), Truncated)
		}
		fn(le.Uint16(b[2:]), b[4:2+n])
		b = b[2+n:]
	}
	return nil
}

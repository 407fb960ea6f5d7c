package pe

// Import is one DLL that an image needs, and the functions that it imports from it.
type Import struct {
	DLL      string
	Names    []string // functions imported by name
	Ordinals []uint16 // functions imported by number
}

// Bounds of an import directory; real images stay far below. Tables may overlap,
// so that a small image could otherwise name more than memory holds.
const (
	maxImportDLLs = 4096
	maxImports    = 1 << 17 // functions, of all DLLs together
	minThunk      = 4       // bytes of a function's entry, at least
)

// importRoom is how many functions and bytes of names may still be read.
type importRoom struct{ functions, text int }

const (
	importSize    = 20 // IMAGE_IMPORT_DESCRIPTOR
	importDLL     = 12 // offset of the DLL's name in it
	importThunks  = 16 // offset of FirstThunk in it
	hintSize      = 2  // bytes before a name
	ordinalFlag32 = 1 << 31
	ordinalFlag64 = 1 << 63
)

// Imports returns what the image needs when it is loaded, without delay-loaded
// DLLs. If the directory is damaged or too large, the error is a *FormatError,
// and the DLLs before that place are returned too, without the one that was being
// read. An image without imports has nil and no error. Imports allocates: do not
// call it while a thread is suspended.
func (f *File) Imports() (out []Import, err error) {
	d := f.dirs[dirImport]
	if d.size == 0 {
		return nil, nil
	}
	room := importRoom{min(maxImports, f.bytes()/minThunk), f.textRoom()}
	for at := d.rva; len(out) < maxImportDLLs; at += importSize {
		b, ok := f.BytesAt(at, importSize)
		if !ok {
			return out, &FormatError{f.name, "import directory", uint64(at), uint64(d.size), Outside}
		}
		name := u32(b[importDLL:])
		if name == 0 {
			return out, nil
		}
		var im Import
		if im.DLL, ok = f.text(name); !ok {
			return out, &FormatError{f.name, "import's DLL name", uint64(name), 0, BadString}
		}
		thunks := u32(b) // OriginalFirstThunk: FirstThunk is overwritten in a mapped image
		if thunks == 0 {
			thunks = u32(b[importThunks:])
		}
		room.text -= len(im.DLL)
		if err = f.thunks(thunks, &im, &room); err != nil {
			return out, err
		}
		out = append(out, im)
	}
	return out, &FormatError{f.name, "import directory", uint64(d.rva), maxImportDLLs, TooLarge}
}

// thunks reads one DLL's table of names and ordinals, up to an entry of 0.
func (f *File) thunks(at uint32, im *Import, room *importRoom) error {
	for ; room.functions > 0 && room.text > 0; room.functions-- {
		v, size, ok := f.thunk(at)
		if !ok || at == 0 {
			return &FormatError{f.name, "import thunk", uint64(at), 0, Outside}
		}
		switch {
		case v == 0:
			return nil
		case v&ordinalFlag64 != 0:
			im.Ordinals = append(im.Ordinals, uint16(v))
		default:
			name, ok := f.text(uint32(v) + hintSize)
			if !ok {
				return &FormatError{f.name, "import name", uint64(uint32(v)), 0, BadString}
			}
			room.text -= len(name)
			im.Names = append(im.Names, name)
		}
		at += size
	}
	return &FormatError{f.name, "import thunks", uint64(at), maxImports, TooLarge}
}

// thunk reads one entry and its size. The ordinal flag of a 32-bit image's entry
// is moved to bit 63.
func (f *File) thunk(at uint32) (v uint64, size uint32, ok bool) {
	if !f.wide {
		w, ok := f.word(at)
		return uint64(w&^ordinalFlag32) | uint64(w&ordinalFlag32)<<32, 4, ok
	}
	b, ok := f.BytesAt(at, 8)
	if !ok {
		return 0, 8, false
	}
	return u64(b), 8, true
}

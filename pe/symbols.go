package pe

// Function is a function that the COFF symbol table names. GNU compilers write it.
type Function struct {
	Name string
	RVA  uint32
}

// Source: Microsoft, "PE Format", "COFF Symbol Table".
const (
	symbolSize     = 18
	symbolFunction = 0x20
)

// Functions returns the functions in the COFF symbol table, which is only in files: none for an image from
// memory. Damaged or unnamed entries are skipped.
func (f *File) Functions() (out []Function) {
	at := uint64(f.symbols)
	if at == 0 || at > uint64(len(f.raw)) {
		return nil
	}
	b, room := f.raw[at:], f.textRoom()
	for range f.symbolCount {
		if len(b) < symbolSize {
			break
		}
		if s := int(u16(b[12:])) - 1; u16(b[14:]) == symbolFunction && s >= 0 &&
			s < len(f.sections) && room > 0 {
			if name := f.symbolName(b); name != "" {
				out, room = append(out, Function{name, f.sections[s].RVA + u32(b[8:])}), room-len(name)
			}
		}
		b = b[min(symbolSize*(1+int(b[17])), len(b)):]
	}
	return out
}

// symbolName is the name of a symbol: up to eight bytes, or a place in the string table.
func (f *File) symbolName(b []byte) string {
	if u32(b) != 0 {
		return cString(b[:8])
	}
	if at := uint64(u32(b[4:])); at < uint64(len(f.strings)) {
		return cString(f.strings[at:][:min(uint64(len(f.strings))-at, maxName)])
	}
	return ""
}

package elfasm

// What the image of Image holds.
const (
	Func = 0x1000 // virtual address of the function "outer"
	Size = 6      // its bytes

	codeAt  = 0x1000
	frameAt = 0x1100
	loaded  = 0x200 // bytes from codeAt on
)

// code is push rbp; mov rbp, rsp; pop rbp; ret.
var code = []byte{0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3}

// program is the FDE's: cfa rsp+8; after push rsp+16 and rbp saved; after mov
// from rbp; after pop rsp+8 again.
var program = []byte{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41, 0x0c, 7, 8}

// Image is an x86-64 image of one function with call frame information and a
// symbol. Its bytes from 0x1000 on are loaded there.
func Image() []byte { return ImageWith(program) }

// ImageWith is Image with another call frame program in the function's FDE.
func ImageWith(program []byte) []byte {
	c, frames := AMD64CIE(), Frames{Addr: frameAt}
	c.Encoding = Relative
	frames.CIE(&c)
	frames.FDE(&c, Func, Size, program...)
	symbol := append(make([]byte, 24), 1, 0, 0, 0, 0x12, 0, 1, 0) // a global function of section 1
	f := File{Entry: Func,
		Segments: []Segment{{Type: Load, Flags: ReadExecute, Off: codeAt, Addr: codeAt, FileSize: loaded,
			MemSize: loaded, Align: 0x1000}},
		Sections: []Section{
			{Name: ".text", Type: ProgBits, Addr: codeAt, At: codeAt, Body: code},
			{Name: ".eh_frame", Type: ProgBits, Addr: frameAt, At: frameAt, Body: frames.Bytes()},
			{Name: ".symtab", Type: SymTab, At: codeAt + loaded, Link: 4, EntrySize: 24,
				Body: put64(symbol, Func, Size)},
			{Name: ".strtab", Type: StrTab, Body: []byte("\x00outer\x00")},
		}}
	return f.Bytes()
}

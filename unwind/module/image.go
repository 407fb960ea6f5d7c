package module

import (
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
)

// Image answers rare questions about an image of any format. Addresses are the image's own: mapped addresses
// minus Module.Bias. No method allocates.
//
// A new format implements Image and gives the module a CFI table. Walkers, merge, and the tool need no
// change.
type Image interface {
	// Bytes returns at most n bytes from at, or nil.
	Bytes(at uint64, n int) []byte
	// CFIBase is added to an address for a lookup in the module's CFI table.
	CFIBase() uint64
	// Starts reports whether the format's own unwind data has a function that
	// begins at at.
	Starts(at uint64) bool
	// Entry returns the image's entry point, or false if it has none or the format
	// is not supported (PE).
	Entry() (at uint64, ok bool)
	// SystemV reports whether the code follows the System V ABI.
	SystemV() bool
}

type elfImage struct{ f *elf.File }

func (i elfImage) Bytes(at uint64, n int) []byte { return i.f.Tail(at, n) }
func (i elfImage) CFIBase() uint64               { return 0 }
func (i elfImage) Starts(uint64) bool            { return false }
func (i elfImage) Entry() (uint64, bool)         { return i.f.Entry(), i.f.Entry() != 0 }
func (i elfImage) SystemV() bool                 { return true }

type peImage struct{ f *pe.File }

func (i peImage) Bytes(at uint64, n int) []byte {
	if at != uint64(uint32(at)) {
		return nil
	}
	return i.f.Tail(uint32(at), n)
}

func (i peImage) CFIBase() uint64 { return i.f.ImageBase() }

func (i peImage) Starts(at uint64) bool {
	return at == uint64(uint32(at)) && (i.f.AMD64().Starts(uint32(at)) || i.f.ARM64().Starts(uint32(at)))
}

func (i peImage) Entry() (uint64, bool) { return 0, false }
func (i peImage) SystemV() bool         { return false }

// noImage serves modules whose image could not be read.
type noImage struct{}

func (noImage) Bytes(uint64, int) []byte { return nil }
func (noImage) CFIBase() uint64          { return 0 }
func (noImage) Starts(uint64) bool       { return false }
func (noImage) Entry() (uint64, bool)    { return 0, false }
func (noImage) SystemV() bool            { return false }

// image returns the module's image: the field Image, or that of its ELF or PE file.
func (m *Module) image() Image {
	switch {
	case m.Image != nil:
		return m.Image
	case m.ELF != nil:
		return elfImage{m.ELF}
	case m.PE != nil:
		return peImage{m.PE}
	}
	return noImage{}
}

// Bytes returns at most n bytes of the image from a mapped address, or nil.
// It does not allocate. It is called often: without image, the calls are direct.
func (m *Module) Bytes(addr uint64, n int) []byte {
	switch {
	case m.Image != nil:
		return m.Image.Bytes(addr-m.Bias, n)
	case m.ELF != nil:
		return elfImage{m.ELF}.Bytes(addr-m.Bias, n)
	case m.PE != nil:
		return peImage{m.PE}.Bytes(addr-m.Bias, n)
	}
	return nil
}

// CFIBias is the difference between mapped addresses and those of the module's CFI table.
func (m *Module) CFIBias() uint64 { return m.Bias - m.image().CFIBase() }

// Entry returns the mapped address of the image's entry point, which is valid only if ok.
func (m *Module) Entry() (addr uint64, ok bool) {
	at, ok := m.image().Entry()
	return at + m.Bias, ok
}

// SystemV reports whether the module's code follows the System V ABI.
func (m *Module) SystemV() bool { return m.image().SystemV() }

// Starts reports whether a function begins at a mapped address, according to the image's
// unwind data.
func (m *Module) Starts(addr uint64) bool {
	if m.CFI != nil {
		at := addr - m.CFIBias()
		if fde, _ := m.CFI.Find(at); fde.Lo == at && fde.Hi > at { // without an FDE, both are 0
			return true
		}
	}
	return m.image().Starts(addr - m.Bias)
}

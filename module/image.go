package module

import (
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
)

// Image answers what is seldom asked of an image, whatever its format. Addresses
// are the image's own: mapped ones minus Module.Bias. Nothing of it allocates.
//
// A new format implements it, gives the module a CFI table, and is loaded: no
// walker, merge or tool knows of it.
type Image interface {
	// Bytes returns the up to n bytes that there are from at on, nil if none.
	Bytes(at uint64, n int) []byte
	// CFIBase is what is added to at for a look-up in the module's CFI table.
	CFIBase() uint64
	// Starts reports whether the format's own unwind data has a function that
	// begins at at.
	Starts(at uint64) bool
	// Entry is where a program begins, false if the system enters it otherwise.
	Entry() (at uint64, ok bool)
	// SystemV reports whether its code keeps System V's conventions.
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

// noImage is that of a module that could not be read.
type noImage struct{}

func (noImage) Bytes(uint64, int) []byte { return nil }
func (noImage) CFIBase() uint64          { return 0 }
func (noImage) Starts(uint64) bool       { return false }
func (noImage) Entry() (uint64, bool)    { return 0, false }
func (noImage) SystemV() bool            { return false }

// image is the module's image. An ELF or PE file needs none given.
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

// Bytes returns the up to n bytes of the image that there are from a mapped
// address on, nil if none. It allocates nothing.
func (m *Module) Bytes(addr uint64, n int) []byte { return m.image().Bytes(addr-m.Bias, n) }

// CFIBias is what mapped addresses are above those of the module's CFI table.
func (m *Module) CFIBias() uint64 { return m.Bias - m.image().CFIBase() }

// Entry is the mapped address where a program begins.
func (m *Module) Entry() (addr uint64, ok bool) {
	at, ok := m.image().Entry()
	return at + m.Bias, ok
}

// SystemV reports whether the module's code keeps System V's conventions.
func (m *Module) SystemV() bool { return m.image().SystemV() }

// Starts reports whether a function begins at a mapped address, as far as the
// unwind data of the image tells.
func (m *Module) Starts(addr uint64) bool {
	if m.CFI != nil {
		at := addr - m.CFIBias()
		if fde, _ := m.CFI.Find(at); fde.Lo == at && fde.Hi > at { // empty if there is none
			return true
		}
	}
	return m.image().Starts(addr - m.Bias)
}

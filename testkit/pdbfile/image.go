package pdbfile

import "github.com/seedwalk/seedwalk/testkit/peasm"

// Image returns an image with the sections and the ID of a PDB, and the name of the PDB as its linker wrote
// it. Functions are pairs of RVAs; each saves no registers.
func (f *File) Image(path string, functions ...[2]uint32) []byte {
	data := peasm.NewSection(".rdata", 0x10000).Label("unwind").U32(1).Label("functions")
	for _, fn := range functions {
		data.U32(fn[0], fn[1]).AtLabel("unwind")
	}
	size := uint32(len(path) + 25)
	data.Label("debug").U32(0, 0, 0, 2, size).AtLabel("id").U32(0)
	data.Label("id").Bytes([]byte("RSDS")...).Bytes(f.GUID[:]...).U32(f.Age).Text(path)
	im := &peasm.File{DLL: true, Dirs: map[int]peasm.Directory{
		peasm.Exception: {Label: "functions", Size: uint32(12 * len(functions))},
		peasm.Debug:     {Label: "debug", Size: 28},
	}}
	for _, s := range f.Sections {
		section := peasm.Raw(".section", s.RVA, make([]byte, s.Size))
		section.Flags = s.Flags
		im.Sections = append(im.Sections, section)
	}
	im.Sections = append(im.Sections, data)
	return im.Bytes()
}

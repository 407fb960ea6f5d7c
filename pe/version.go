package pe

// Version is a file version from a version resource: major, minor, build, and
// private part.
type Version [4]uint16

// Sources: the PE format's .rsrc section; VS_VERSIONINFO and VS_FIXEDFILEINFO of
// verrsrc.h.
const (
	resourceHead    = 16
	resourceEntry   = 8
	resourceVersion = 16 // RT_VERSION
	resourceTree    = 1 << 31
	resourceLevels  = 3 // type, name, language

	versionFixed     = 40 // after the lengths and the key VS_VERSION_INFO
	versionSignature = 0xfeef04bd
)

// Version returns the file version of the image's version resource, false if
// there is none or it cannot be read.
func (f *File) Version() (v Version, ok bool) {
	d := f.dirs[dirResource]
	if d.size == 0 {
		return v, false
	}
	var at uint32
	for level := range resourceLevels {
		entry, ok := f.resource(d.rva+at, level == 0)
		if !ok || entry&resourceTree == 0 != (level == resourceLevels-1) {
			return v, false
		}
		at = entry &^ resourceTree
	}
	rva, ok := f.word(d.rva + at) // IMAGE_RESOURCE_DATA_ENTRY
	if !ok {
		return v, false
	}
	b, ok := f.BytesAt(rva, versionFixed+16)
	if !ok || u32(b[versionFixed:]) != versionSignature {
		return v, false
	}
	high, low := u32(b[versionFixed+8:]), u32(b[versionFixed+12:])
	return Version{uint16(high >> 16), uint16(high), uint16(low >> 16), uint16(low)}, true
}

// resource returns the offset in one entry of a resource directory, with the
// flag resourceTree: in the directory of types, of the entry for versions; else
// of the first entry, whatever its name or language.
func (f *File) resource(rva uint32, types bool) (offset uint32, ok bool) {
	head, ok := f.BytesAt(rva, resourceHead)
	if !ok {
		return 0, false
	}
	n := uint32(u16(head[12:])) + uint32(u16(head[14:]))
	for i := range n {
		b, ok := f.BytesAt(rva+resourceHead+i*resourceEntry, resourceEntry)
		if !ok {
			return 0, false
		}
		if !types || u32(b) == resourceVersion {
			return u32(b[4:]), true
		}
	}
	return 0, false
}

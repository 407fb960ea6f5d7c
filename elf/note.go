package elf

import (
	"encoding/hex"

	"github.com/seedwalk/seedwalk/internal/buf"
)

const (
	shtNote      = 7
	noteBuildID  = 3
	maxBuildID   = 64
	maxNoteCount = 4096
)

// readBuildID looks in the PT_NOTE segments, then in note sections.
func (f *File) readBuildID() {
	for i := range f.programs {
		p := &f.programs[i]
		if p.typ != ptNote {
			continue
		}
		if b, ok := f.programBytes(p); ok && f.buildIDIn(b, p.alignTo) {
			return
		}
	}
	for i := range f.sections {
		s := &f.sections[i]
		if s.typ != shtNote {
			continue
		}
		if b, ok := f.fileRange(s.off, s.size); ok && f.buildIDIn(b, s.addrAlign) {
			return
		}
	}
}

// buildIDIn takes the build id out of notes. Fields are aligned to four bytes,
// or to eight where the header says so.
func (f *File) buildIDIn(b []byte, alignment uint64) bool {
	mask := uint64(3)
	if alignment == 8 {
		mask = 7
	}
	r := buf.At(b, 0)
	for n := 0; r.Len() >= 12 && n < maxNoteCount; n++ {
		nameSize, descSize, typ := uint64(r.U32()), uint64(r.U32()), r.U32()
		name := r.Bytes(nameSize)
		r.Skip(-uint64(r.Pos()) & mask)
		desc := r.Bytes(descSize)
		if !r.OK() {
			return false
		}
		if pad := -uint64(r.Pos()) & mask; pad <= uint64(r.Len()) {
			r.Skip(pad)
		}
		if typ == noteBuildID && string(name) == "GNU\x00" && len(desc) > 0 && len(desc) <= maxBuildID {
			f.buildID = hex.EncodeToString(desc)
			return true
		}
	}
	return false
}

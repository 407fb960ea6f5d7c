package elf

import (
	"encoding/hex"

	"github.com/seedwalk/seedwalk/internal/buf"
)

const (
	shtNote      = 7
	noteBuildID  = 3
	noteGoBuild  = 4
	maxBuildID   = 64
	maxNoteCount = 4096 // of all segments and sections, which may share their bytes
)

// readNotes reads the notes of the PT_NOTE segments, then those of note sections.
func (f *File) readNotes() {
	for i := range f.programs {
		p := &f.programs[i]
		if p.typ != ptNote {
			continue
		}
		if b, ok := f.programBytes(p); ok {
			f.notesIn(b, p.alignTo)
		}
	}
	for i := range f.sections {
		s := &f.sections[i]
		if s.typ != shtNote {
			continue
		}
		if b, ok := f.fileRange(s.off, s.size); ok {
			f.notesIn(b, s.addrAlign)
		}
	}
}

// notesIn finds the build id and the mark of Go's linker in notes. Fields are aligned to
// four bytes, or to eight if alignment is 8.
//
// Source: Go, cmd/link/internal/ld/elf.go: its note has the name "Go" with two zeros.
func (f *File) notesIn(b []byte, alignment uint64) {
	mask := uint64(3)
	if alignment == 8 {
		mask = 7
	}
	r := buf.At(b, 0)
	for ; r.Len() >= 12 && f.notes < maxNoteCount; f.notes++ {
		nameSize, descSize, typ := uint64(r.U32()), uint64(r.U32()), r.U32()
		name := r.Bytes(nameSize)
		r.Skip(-uint64(r.Pos()) & mask)
		desc := r.Bytes(descSize)
		if !r.OK() {
			return
		}
		if pad := -uint64(r.Pos()) & mask; pad <= uint64(r.Len()) {
			r.Skip(pad)
		}
		switch {
		case f.buildID == "" && typ == noteBuildID && string(name) == "GNU\x00" &&
			len(desc) > 0 && len(desc) <= maxBuildID:
			f.buildID = hex.EncodeToString(desc)
		case typ == noteGoBuild && string(name) == "Go\x00\x00":
			f.linkedByGo = true
		}
	}
}

package elf

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/seedwalk/seedwalk/internal/buf"
)

const (
	shtNobits     = 8
	shfCompressed = 0x800
	compressZlib  = 1
	compressZstd  = 2

	// MaxSection bounds the expanded size of a compressed section, in bytes. The
	// bounds of package buf apply too.
	MaxSection = 1 << 28
)

// Section returns the bytes of a section and the virtual address they are
// linked at (0 if they are not loaded). Compressed sections (SHF_COMPRESSED
// with zlib or zstd, and .zdebug_NAME for .debug_NAME) are expanded. The error
// is a *FormatError, or wraps ErrNoSection: no section of that name, or one
// whose bytes are in another file (separate debug information).
func (f *File) Section(name string) (data []byte, addr uint64, err error) {
	if h := f.headerOf(name); h != nil {
		return f.sectionBytes(h)
	}
	return nil, 0, fmt.Errorf("%s: %s: %w", f.name, name, ErrNoSection)
}

// headerOf returns the header of the section that Section(name) reads, or nil.
func (f *File) headerOf(name string) *sectionHeader {
	for i := range f.sections {
		if f.sections[i].name == name {
			return &f.sections[i]
		}
	}
	if rest, ok := strings.CutPrefix(name, ".debug_"); ok {
		for i := range f.sections {
			if f.sections[i].name == ".zdebug_"+rest {
				return &f.sections[i]
			}
		}
	}
	return nil
}

func (f *File) sectionBytes(s *sectionHeader) ([]byte, uint64, error) {
	if s.typ == shtNobits {
		return nil, s.addr, fmt.Errorf("%s: %s has no bytes in this file: %w", f.name, s.name, ErrNoSection)
	}
	raw, ok := f.fileRange(s.off, s.size)
	if !ok {
		return nil, s.addr, f.bad("section "+s.name, s.off, s.size, "lies outside the image")
	}
	var err error
	switch {
	case s.flags&shfCompressed != 0:
		raw, err = f.expand(s, raw)
	case strings.HasPrefix(s.name, ".zdebug_"):
		raw, err = f.expandGNU(s, raw)
	}
	return raw, s.addr, err
}

// expand expands a section that begins with an Elf64_Chdr.
func (f *File) expand(s *sectionHeader, raw []byte) ([]byte, error) {
	r := buf.At(raw, 0)
	kind := r.U32()
	r.Skip(4)
	size := r.U64()
	r.Skip(8)
	if !r.OK() {
		return nil, f.bad("compression header of "+s.name, s.off, s.size, "truncated")
	}
	var out []byte
	err := f.charge(s, size)
	if err != nil {
		return nil, f.badExpansion(s, size, err)
	}
	switch rest := raw[r.Pos():]; kind {
	case compressZlib:
		out, err = buf.ExpandZlib(rest, size, MaxSection)
	case compressZstd:
		out, err = expandZstd(rest, size)
	default:
		return nil, f.bad("compression header of "+s.name, s.off, uint64(kind), "neither zlib nor zstd")
	}
	return out, f.badExpansion(s, size, err)
}

// expandGNU expands a .zdebug_ section.
func (f *File) expandGNU(s *sectionHeader, raw []byte) ([]byte, error) {
	var size uint64
	if len(raw) >= 12 {
		size = binary.BigEndian.Uint64(raw[4:])
	}
	if err := f.charge(s, size); err != nil {
		return nil, f.badExpansion(s, size, err)
	}
	out, err := buf.ExpandGNU(raw, MaxSection)
	return out, f.badExpansion(s, s.size, err)
}

// freeExpansion is how many bytes all sections of an image may expand to together, however small it is.
const freeExpansion = 1 << 20

// charge takes a section's expanded size from the budget that all sections of the image share, once
// for each section. Without the shared budget, sections that share their bytes could each expand them.
func (f *File) charge(s *sectionHeader, size uint64) error {
	f.expanding.Lock()
	defer f.expanding.Unlock()
	if f.charged[s] {
		return nil
	}
	most := uint64(freeExpansion + buf.MaxRatio*len(f.data))
	if size > most-f.expanded {
		return fmt.Errorf("%w: %d bytes, from an image of %d; other sections take %d", buf.ErrTooLarge,
			size, len(f.data), f.expanded)
	}
	if f.charged == nil {
		f.charged = map[*sectionHeader]bool{}
	}
	f.charged[s], f.expanded = true, f.expanded+size
	return nil
}

// expandZstd expands into memory of the stated size: the decoder keeps no window
// of its own.
func expandZstd(raw []byte, size uint64) ([]byte, error) {
	if err := buf.CheckExpansion(len(raw), size, MaxSection); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(max(size, 1)))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out, err := z.DecodeAll(raw, make([]byte, 0, size))
	if err == nil && uint64(len(out)) != size {
		err = fmt.Errorf("expands to %d bytes, %d are stated", len(out), size)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// badExpansion returns the *FormatError of a section that cannot be expanded,
// nil if err is nil. Its Err is buf.ErrTooLarge if the section is too large.
func (f *File) badExpansion(s *sectionHeader, size uint64, err error) error {
	if err == nil {
		return nil
	}
	e := f.bad("section "+s.name, s.off, size, err.Error())
	e.Err = err
	return e
}

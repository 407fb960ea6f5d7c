package elf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/seedwalk/seedwalk/internal/buf"
)

const (
	shtNobits     = 8
	shfCompressed = 0x800
	compressZlib  = 1
	compressZstd  = 2

	// MaxSection bounds what a compressed section may grow to.
	MaxSection = 1 << 30
)

// Section returns the bytes of a section and the virtual address they are
// linked at (0 if they are not mapped). Compressed sections (SHF_COMPRESSED
// with zlib or zstd, and .zdebug_NAME for .debug_NAME) are expanded. The error
// is a *FormatError, or wraps ErrNoSection: no section of that name, or one
// whose bytes are in another file (separate debug information).
func (f *File) Section(name string) (data []byte, addr uint64, err error) {
	for i := range f.sections {
		if f.sections[i].name == name {
			return f.sectionBytes(&f.sections[i])
		}
	}
	if rest, ok := strings.CutPrefix(name, ".debug_"); ok {
		for i := range f.sections {
			if f.sections[i].name == ".zdebug_"+rest {
				return f.sectionBytes(&f.sections[i])
			}
		}
	}
	return nil, 0, fmt.Errorf("%s: %s: %w", f.name, name, ErrNoSection)
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

// expand reads an Elf64_Chdr and what follows it.
func (f *File) expand(s *sectionHeader, raw []byte) ([]byte, error) {
	r := buf.At(raw, 0)
	kind := r.U32()
	r.Skip(4)
	size := r.U64()
	r.Skip(8)
	if !r.OK() {
		return nil, f.bad("compression header of "+s.name, s.off, s.size, "truncated")
	}
	rest := raw[r.Pos():]
	switch kind {
	case compressZlib:
		return f.inflate(s, rest, size)
	case compressZstd:
		return f.unzstd(s, rest, size)
	}
	return nil, f.bad("compression header of "+s.name, s.off, uint64(kind), "neither zlib nor zstd")
}

// expandGNU reads a .zdebug_ section.
func (f *File) expandGNU(s *sectionHeader, raw []byte) ([]byte, error) {
	out, err := buf.ExpandGNU(raw, MaxSection)
	if err != nil {
		return nil, f.bad("section "+s.name, s.off, s.size, err.Error())
	}
	return out, nil
}

func (f *File) inflate(s *sectionHeader, raw []byte, size uint64) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, f.bad("section "+s.name, s.off, size, err.Error())
	}
	defer z.Close()
	return f.readExactly(s, z, size)
}

func (f *File) unzstd(s *sectionHeader, raw []byte, size uint64) ([]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxSection), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, f.bad("section "+s.name, s.off, size, err.Error())
	}
	defer z.Close()
	return f.readExactly(s, z, size)
}

func (f *File) readExactly(s *sectionHeader, z io.Reader, size uint64) ([]byte, error) {
	out, err := buf.ReadExactly(z, size, MaxSection)
	if err != nil {
		return nil, f.bad("section "+s.name, s.off, size, err.Error())
	}
	return out, nil
}

package elf

import (
	"errors"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// CFISections are the call frame information of an image. An absent section is
// nil. Err joins what was there but could not be read.
type CFISections struct {
	EHFrame        []byte
	EHFrameAddr    uint64
	EHFrameHdr     []byte
	EHFrameHdrAddr uint64
	DebugFrame     []byte
	DebugFrameAddr uint64
	TextAddr       uint64
	DataAddr       uint64
	Err            error
}

// CFISections finds the call frame information by section headers, and by
// PT_GNU_EH_FRAME if they are missing. Without section headers the end of
// .eh_frame is unknown: the bytes extend to the end of its segment, and the
// reader stops at the terminator.
func (f *File) CFISections() CFISections {
	var c CFISections
	var errs []error
	get := func(name string) ([]byte, uint64) {
		h := f.headerOf(name)
		if h == nil {
			return nil, 0
		}
		b, addr, err := f.sectionBytes(h)
		if err != nil && !errors.Is(err, ErrNoSection) {
			errs = append(errs, err)
		}
		return b, addr
	}
	c.EHFrame, c.EHFrameAddr = get(".eh_frame")
	c.EHFrameHdr, c.EHFrameHdrAddr = get(".eh_frame_hdr")
	c.DebugFrame, c.DebugFrameAddr = get(".debug_frame")
	if c.EHFrameHdr == nil && !f.isDebugFile() {
		f.headerByProgram(&c)
	}
	if c.EHFrame == nil && c.EHFrameHdr != nil {
		f.framesByHeader(&c, &errs)
	}
	c.TextAddr = f.sectionAddr(".text")
	if c.DataAddr = f.sectionAddr(".got.plt"); c.DataAddr == 0 {
		c.DataAddr = f.sectionAddr(".got")
	}
	c.Err = errors.Join(errs...)
	return c
}

func (f *File) sectionAddr(name string) uint64 {
	if h := f.headerOf(name); h != nil {
		return h.addr
	}
	return 0
}

// isDebugFile reports whether this is separate debug information: its program
// headers describe bytes that are only in the other file.
func (f *File) isDebugFile() bool {
	for i := range f.sections {
		if f.sections[i].name == ".eh_frame_hdr" || f.sections[i].name == ".text" {
			return f.sections[i].typ == shtNobits
		}
	}
	return false
}

func (f *File) headerByProgram(c *CFISections) {
	for i := range f.programs {
		p := &f.programs[i]
		if p.typ != ptGNUEHFrame {
			continue
		}
		if b, ok := f.BytesAt(p.vaddr, int(min(p.filesz, 1<<31))); ok && len(b) > 0 {
			c.EHFrameHdr, c.EHFrameHdrAddr = b, p.vaddr
			return
		}
		f.problem(f.bad("PT_GNU_EH_FRAME", p.off, p.vaddr, "lies outside the segments"))
	}
}

// framesByHeader follows eh_frame_ptr of .eh_frame_hdr.
func (f *File) framesByHeader(c *CFISections, errs *[]error) {
	addr, ok := ehFramePtr(c.EHFrameHdr, c.EHFrameHdrAddr)
	if !ok {
		*errs = append(*errs, f.bad(".eh_frame_hdr", c.EHFrameHdrAddr, uint64(len(c.EHFrameHdr)),
			"its eh_frame_ptr cannot be read"))
		return
	}
	b, ok := f.from(addr)
	if !ok {
		*errs = append(*errs, f.bad("eh_frame_ptr", c.EHFrameHdrAddr+4, addr, "leads outside the segments"))
		return
	}
	c.EHFrame, c.EHFrameAddr = b, addr
}

// ehFramePtr reads the address of .eh_frame from its header, in the encodings
// that linkers write: 4 or 8 bytes, absolute, or relative to itself or to the
// header. It returns false for other encodings.
func ehFramePtr(hdr []byte, addr uint64) (uint64, bool) {
	r := buf.At(hdr, 0)
	version, enc := r.U8(), r.U8()
	r.Skip(2)
	var v uint64
	switch enc & 0x0f {
	case 0, 4, 12:
		v = r.U64()
	case 3:
		v = uint64(r.U32())
	case 11:
		v = uint64(int64(int32(r.U32())))
	default:
		return 0, false
	}
	switch enc & 0xf0 {
	case 0:
	case 0x10:
		v += addr + 4
	case 0x30:
		v += addr
	default:
		return 0, false
	}
	return v, version == 1 && r.OK()
}

package cfi

import "github.com/seedwalk/seedwalk/internal/buf"

// Pointer encodings (LSB "DWARF Exception Header Encoding").
const (
	DW_EH_PE_absptr   = 0x00
	DW_EH_PE_uleb128  = 0x01
	DW_EH_PE_udata2   = 0x02
	DW_EH_PE_udata4   = 0x03
	DW_EH_PE_udata8   = 0x04
	DW_EH_PE_sleb128  = 0x09
	DW_EH_PE_sdata2   = 0x0a
	DW_EH_PE_sdata4   = 0x0b
	DW_EH_PE_sdata8   = 0x0c
	DW_EH_PE_pcrel    = 0x10
	DW_EH_PE_textrel  = 0x20
	DW_EH_PE_datarel  = 0x30
	DW_EH_PE_funcrel  = 0x40
	DW_EH_PE_aligned  = 0x50
	DW_EH_PE_indirect = 0x80
	DW_EH_PE_omit     = 0xff
)

// bases are the addresses to which encoded pointers may be relative.
type bases struct {
	section uint64 // address of the section's first byte
	text    uint64
	data    uint64
	fn      uint64 // start of the FDE's function, in its own program only
	hasFn   bool
	size    uint8 // bytes of an absolute pointer: 4 or 8
}

// plain reads a value of the encoding's format, without its base.
func plain(r *buf.Reader, enc, size uint8) (uint64, Reason) {
	var v uint64
	switch enc & 0x0f {
	case DW_EH_PE_absptr:
		v = address(r, size)
	case DW_EH_PE_uleb128:
		v = r.ULEB()
	case DW_EH_PE_udata2:
		v = uint64(r.U16())
	case DW_EH_PE_udata4:
		v = uint64(r.U32())
	case DW_EH_PE_udata8, DW_EH_PE_sdata8:
		v = r.U64()
	case DW_EH_PE_sleb128:
		v = uint64(r.SLEB())
	case DW_EH_PE_sdata2:
		v = uint64(int64(int16(r.U16())))
	case DW_EH_PE_sdata4:
		v = uint64(int64(int32(r.U32())))
	default:
		return 0, BadEncoding
	}
	if !r.OK() {
		return 0, Truncated
	}
	return v, None
}

func address(r *buf.Reader, size uint8) uint64 {
	if size == 4 {
		return uint64(r.U32())
	}
	return r.U64()
}

// pointer reads an encoded pointer. Indirect ones would need relocated memory and are refused; see
// skipPointer for pointers that may be indirect.
func pointer(r *buf.Reader, enc uint8, b *bases) (uint64, Reason) {
	if enc == DW_EH_PE_omit || enc&DW_EH_PE_indirect != 0 {
		return 0, BadEncoding
	}
	if enc == DW_EH_PE_aligned {
		align(r, b)
		return plain(r, DW_EH_PE_absptr, b.size)
	}
	base := uint64(0)
	switch enc & 0x70 {
	case 0:
	case DW_EH_PE_pcrel:
		base = b.section + uint64(r.Pos())
	case DW_EH_PE_textrel:
		base = b.text
	case DW_EH_PE_datarel:
		base = b.data
	case DW_EH_PE_funcrel:
		if !b.hasFn {
			return 0, BadEncoding
		}
		base = b.fn
	default:
		return 0, BadEncoding
	}
	v, why := plain(r, enc, b.size)
	if why != None {
		return 0, why
	}
	if v != 0 { // 0 is no address, whatever it is relative to (libgcc, read_encoded_value_with_base)
		v += base
	}
	if b.size == 4 {
		v = uint64(uint32(v))
	}
	return v, None
}

// skipPointer skips a pointer of any encoding, including indirect ones: an unwinder of values does not need a
// personality routine.
func skipPointer(r *buf.Reader, enc uint8, b *bases) Reason {
	if enc == DW_EH_PE_omit {
		return None
	}
	if enc&0x7f == DW_EH_PE_aligned {
		align(r, b)
		enc = DW_EH_PE_absptr
	}
	if enc&0x70 > DW_EH_PE_aligned {
		return BadEncoding
	}
	_, why := plain(r, enc, b.size)
	return why
}

// align skips to the next multiple of the pointer size.
func align(r *buf.Reader, b *bases) {
	at := b.section + uint64(r.Pos())
	r.Skip(-at & uint64(b.size-1))
}

// validFDEEncoding reports whether an FDE's start may have this encoding.
func validFDEEncoding(enc uint8) bool {
	if enc&DW_EH_PE_indirect != 0 {
		return false
	}
	switch enc & 0x0f {
	case 0, 1, 2, 3, 4, 9, 10, 11, 12:
	default:
		return false
	}
	return enc&0x70 <= DW_EH_PE_datarel || enc == DW_EH_PE_aligned
}

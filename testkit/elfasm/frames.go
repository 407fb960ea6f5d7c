package elfasm

import "encoding/binary"

// Pointer encodings that FDEs can have here.
const (
	Absolute = 0x00 // DW_EH_PE_absptr
	Relative = 0x1b // DW_EH_PE_pcrel|sdata4
)

// CIE is what FDEs have in common. Code alignment is 1 unless given.
type CIE struct {
	Signal   bool // a signal frame: augmentation S
	Code     uint64
	Data     int64 // data alignment
	RA       uint64
	Encoding uint8
	Program  []byte

	at int // offset of its record
}

// AMD64CIE has CFA = RSP+8 and the return address there.
func AMD64CIE() CIE { return CIE{Data: -8, RA: 16, Program: []byte{0x0c, 7, 8, 0x90, 1}} }

// ARM64CIE has CFA = SP and the return address in x30.
func ARM64CIE() CIE { return CIE{Data: -8, RA: 30, Program: []byte{0x0c, 31, 0}} }

// Frames writes an .eh_frame section, which is at Addr in memory.
type Frames struct {
	Addr uint64
	b    []byte
}

// CIE appends a CIE, and remembers where.
func (f *Frames) CIE(c *CIE) {
	c.at = len(f.b)
	augmentation := "zR\x00"
	if c.Signal {
		augmentation = "zRS\x00"
	}
	b := append([]byte{0, 0, 0, 0, 1}, augmentation...)
	b = binary.AppendUvarint(b, max(1, c.Code))
	b = AppendSLEB(b, c.Data)
	b = binary.AppendUvarint(b, c.RA)
	f.record(append(append(b, 1, c.Encoding), c.Program...))
}

// FDE appends what holds for the size bytes of code from lo on.
func (f *Frames) FDE(c *CIE, lo, size uint64, program ...byte) {
	b := le.AppendUint32(nil, uint32(len(f.b)+4-c.at))
	if c.Encoding == Relative {
		b = put32(b, uint32(lo-(f.Addr+uint64(len(f.b))+8)), uint32(size))
	} else {
		b = put64(b, lo, size)
	}
	f.record(append(append(b, 0), program...)) // no augmentation data
}

// Bytes ends the section.
func (f *Frames) Bytes() []byte { return append(f.b[:len(f.b):len(f.b)], 0, 0, 0, 0) }

// record appends a record, filled up with DW_CFA_nop.
func (f *Frames) record(body []byte) {
	for len(body)%8 != 4 {
		body = append(body, 0)
	}
	f.b = append(le.AppendUint32(f.b, uint32(len(body))), body...)
}

// AppendSLEB appends a signed LEB128 number.
func AppendSLEB(b []byte, v int64) []byte {
	for {
		c := uint8(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

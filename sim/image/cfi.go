package image

import (
	"encoding/binary"
	"slices"
)

// .eh_frame from the rows of functions. Sources: DWARF 5 sections 6.4 and 7.24
// (call frame instructions), the Linux Standard Base ("Exception Frames": the
// augmentations z, R, S and the search table), the x86-64 psABI and "DWARF for
// the Arm 64-bit Architecture" (register numbers, RA_SIGN_STATE).

// Call frame instructions; the first three keep an operand in their low bits.
const (
	cfaAdvance    = 0x40
	cfaOffset     = 0x80
	cfaRestore    = 0xc0
	cfaAdvance1   = 0x02
	cfaAdvance2   = 0x03
	cfaAdvance4   = 0x04
	cfaOffsetExt  = 0x05
	cfaRestoreExt = 0x06
	cfaUndefined  = 0x07
	cfaDefCFA     = 0x0c
	cfaDefReg     = 0x0d
	cfaDefOffset  = 0x0e
	cfaDefExpr    = 0x0f
	cfaExpr       = 0x10
	cfaOffsetSF   = 0x11
	cfaNegateRA   = 0x2d // DW_CFA_AARCH64_negate_ra_state
	opDeref       = 0x06
	opBreg0       = 0x70

	encPCRel4   = 0x1b // DW_EH_PE_pcrel | DW_EH_PE_sdata4
	encDataRel4 = 0x3b // DW_EH_PE_datarel | DW_EH_PE_sdata4
	encU4       = 0x03 // DW_EH_PE_udata4
)

// dataAlign divides the offsets of saved registers, negated.
const dataAlign = 8

// dwarfPC is AArch64's number of the program counter: the return address of
// signal frames, since X30 is a register to restore there.
const dwarfPC = 32

// dwarfRegs bounds the numbers used: D31 is 95.
const dwarfRegs = 96

// dwarfAMD64 gives UNWIND_INFO's numbers DWARF's.
var dwarfAMD64 = [16]byte{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

func dwarfReg(a Arch, r Reg) byte {
	if a == AMD64 {
		return dwarfAMD64[r&15]
	}
	return byte(r)
}

// codeAlign divides distances between rows.
func codeAlign(a Arch) uint32 {
	if a == ARM64 {
		return 4
	}
	return 1
}

// dwarfRA is the column of the return address.
func dwarfRA(a Arch, interrupted bool) byte {
	switch {
	case a == AMD64:
		return 16
	case interrupted:
		return dwarfPC
	}
	return linkReg
}

// cfaRule is where a register of the caller is: at CFA+off, or base+off in an
// interrupted row. Not set: as the CIE says.
type cfaRule struct {
	set bool
	off int64
}

// cfaRow is a Row in DWARF's terms.
type cfaRow struct {
	interrupted bool
	base        byte
	off         int64
	regs        [dwarfRegs]cfaRule
	signed      bool
}

// initialRow is what the CIE of called functions says.
func initialRow(a Arch) *cfaRow {
	c := &cfaRow{base: dwarfReg(a, a.SP())}
	if a == AMD64 {
		c.off = 8
		c.regs[16] = cfaRule{true, -8}
	}
	return c
}

// rowOf translates a row. A root's return address is left as it is: it stays
// undefined.
func rowOf(a Arch, r *Row, root *cfaRule) *cfaRow {
	c := &cfaRow{interrupted: r.Interrupted, base: dwarfReg(a, r.Base), off: r.Off, signed: r.Signed}
	for _, s := range r.Saved {
		c.regs[dwarfReg(a, s.Reg)] = cfaRule{true, s.Off}
	}
	for _, s := range r.V {
		if a == ARM64 { // x86-64 ELF functions preserve no vector register
			c.regs[64+s.Reg&31] = cfaRule{true, s.Off}
		}
	}
	if ra := &c.regs[dwarfRA(a, r.Interrupted)]; root != nil {
		*ra = *root
	} else if !r.RAReg {
		*ra = cfaRule{true, r.RA}
	}
	return c
}

// cfaProgram writes the instructions of one FDE.
type cfaProgram struct {
	arch Arch
	fn   *Func
	b    []byte
	now  *cfaRow
	err  error
}

// program returns a function's call frame instructions.
func program(a Arch, fn *Func) ([]byte, error) {
	p := cfaProgram{arch: a, fn: fn, now: initialRow(a)}
	var root *cfaRule
	if fn.Root {
		ra := dwarfRA(a, false)
		p.b = append(p.b, cfaUndefined, ra)
		root = &p.now.regs[ra]
	}
	at, rows := uint32(0), fn.Rows(a)
	for i := range rows {
		next := rowOf(a, &rows[i], root)
		if *next == *p.now {
			continue
		}
		p.advance(fn.Ops[i].Off - at)
		at = fn.Ops[i].Off
		p.to(next)
	}
	return p.b, p.err
}

func (p *cfaProgram) u(op byte, v ...uint64) {
	p.b = append(p.b, op)
	for _, x := range v {
		p.b = binary.AppendUvarint(p.b, x)
	}
}

func (p *cfaProgram) advance(n uint32) {
	by := codeAlign(p.arch)
	if n%by != 0 {
		p.err = errFunc(p.fn, "an instruction at no multiple of %d bytes", by)
	}
	switch n /= by; {
	case n == 0:
	case n < 64:
		p.b = append(p.b, cfaAdvance|byte(n))
	case n < 1<<8:
		p.b = append(p.b, cfaAdvance1, byte(n))
	case n < 1<<16:
		p.b = binary.LittleEndian.AppendUint16(append(p.b, cfaAdvance2), uint16(n))
	default:
		p.b = binary.LittleEndian.AppendUint32(append(p.b, cfaAdvance4), n)
	}
}

// to writes what differs between two rows. Where the frame was interrupted all
// is relative to a register, so that a change of it changes all.
func (p *cfaProgram) to(next *cfaRow) {
	if next.interrupted {
		p.interrupted(next)
		return
	}
	p.cfa(next)
	for r := range next.regs {
		if next.regs[r] != p.now.regs[r] {
			p.reg(byte(r), next.regs[r])
		}
	}
	if next.signed != p.now.signed {
		p.u(cfaNegateRA)
	}
	p.now = next
}

func (p *cfaProgram) cfa(next *cfaRow) {
	base, off := next.base != p.now.base, next.off != p.now.off
	if next.off < 0 {
		p.err = errFunc(p.fn, "a CFA below its base")
	}
	switch {
	case base && off:
		p.u(cfaDefCFA, uint64(next.base), uint64(next.off))
	case base:
		p.u(cfaDefReg, uint64(next.base))
	case off:
		p.u(cfaDefOffset, uint64(next.off))
	}
}

func (p *cfaProgram) reg(r byte, rule cfaRule) {
	n := rule.off / -dataAlign
	switch {
	case !rule.set && r < 64:
		p.b = append(p.b, cfaRestore|r)
	case !rule.set:
		p.u(cfaRestoreExt, uint64(r))
	case rule.off%dataAlign != 0:
		p.err = errFunc(p.fn, "a register saved at CFA%+d", rule.off)
	case n < 0:
		p.u(cfaOffsetSF, uint64(r))
		p.b = appendSLEB(p.b, n)
	case r < 64:
		p.u(cfaOffset|r, uint64(n))
	default:
		p.u(cfaOffsetExt, uint64(r), uint64(n))
	}
}

// interrupted writes all of a row by expressions: the CFA is the word at
// base+off, the registers are at base+off.
func (p *cfaProgram) interrupted(next *cfaRow) {
	at := func(off int64) []byte { return appendSLEB([]byte{opBreg0 + next.base&31}, off) }
	cfa := append(at(next.off), opDeref)
	p.u(cfaDefExpr, uint64(len(cfa)))
	p.b = append(p.b, cfa...)
	for r, rule := range next.regs {
		if rule.set {
			e := at(rule.off)
			p.u(cfaExpr, uint64(r), uint64(len(e)))
			p.b = append(p.b, e...)
		} else if p.now.regs[r].set && p.now.interrupted {
			p.reg(byte(r), rule)
		}
	}
	p.now = next
}

// appendSLEB appends a signed LEB128.
func appendSLEB(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// record appends a CIE or FDE: its length, its id field and the body, filled up
// with DW_CFA_nop to eight bytes.
func record(b []byte, id uint32, body []byte) []byte {
	n := align(uint32(8+len(body)), 8) - 4
	b = binary.LittleEndian.AppendUint32(b, n)
	b = binary.LittleEndian.AppendUint32(b, id)
	b = append(b, body...)
	return append(b, make([]byte, int(n)-4-len(body))...)
}

// cie is the common information entry of called functions, or of interrupted
// frames: "S" says that their pc is not a return address.
func cie(a Arch, interrupted bool) []byte {
	body := append([]byte{1}, "zR\x00"...)
	if interrupted {
		body = append([]byte{1}, "zRS\x00"...)
	}
	body = append(body, byte(codeAlign(a)), 0x80-dataAlign, dwarfRA(a, interrupted), 1, encPCRel4)
	start := initialRow(a)
	body = append(body, cfaDefCFA, start.base, byte(start.off))
	if a == AMD64 && !interrupted {
		body = append(body, cfaOffset|16, 1)
	}
	return record(nil, 0, body)
}

// frames are .eh_frame and, for the search table, where each FDE is.
type frames struct {
	b   []byte
	fde [][2]uint32 // RVA of the function, of the FDE
}

// ehFrame writes .eh_frame, to stand at RVA at: two CIEs, an FDE for each
// function that has unwind data, and the terminator.
func ehFrame(im *Image, at uint32) (*frames, error) {
	called, interrupted := cie(im.Arch, false), cie(im.Arch, true)
	f := &frames{b: slices.Concat(called, interrupted)}
	for i := range im.Funcs {
		fn := &im.Funcs[i]
		if fn.NoInfo {
			continue
		}
		ins, err := program(im.Arch, fn)
		if err != nil {
			return nil, err
		}
		here := uint32(len(f.b))
		back := here + 4 // from the id field to the CIE
		if fn.Entry != Called {
			back -= uint32(len(called))
		}
		body := binary.LittleEndian.AppendUint32(nil, fn.RVA-(at+here+8))
		body = binary.LittleEndian.AppendUint32(body, fn.Size)
		body = append(append(body, 0), ins...)
		f.b = record(f.b, back, body)
		f.fde = append(f.fde, [2]uint32{fn.RVA, at + here})
	}
	f.b = append(f.b, 0, 0, 0, 0)
	return f, nil
}

// header writes .eh_frame_hdr, to stand at RVA at, for an .eh_frame at RVA
// frame. The functions are sorted already.
func (f *frames) header(at, frame uint32) []byte {
	b := []byte{1, encPCRel4, encU4, encDataRel4}
	b = binary.LittleEndian.AppendUint32(b, frame-(at+4))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.fde)))
	for _, e := range f.fde {
		b = binary.LittleEndian.AppendUint32(b, e[0]-at)
		b = binary.LittleEndian.AppendUint32(b, e[1]-at)
	}
	return b
}

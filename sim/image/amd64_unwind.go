package image

import (
	"encoding/binary"
	"slices"
)

// UNWIND_INFO version 1, from the effects of the prolog's ops. Source: Microsoft,
// "x64 exception handling", struct UNWIND_INFO and UNWIND_CODE.

const (
	pushNonvol  = 0
	allocLarge  = 1
	allocSmall  = 2
	setFPReg    = 3
	saveNonvol  = 4
	saveFar     = 5
	saveXMM     = 8
	saveXMMFar  = 9
	pushMach    = 10
	chainInfo   = 4 << 3 // UNW_FLAG_CHAININFO in the first byte
	smallMax    = 128    // bytes an ALLOC_SMALL can say
	scaledMax   = 0xffff // largest scaled operand
	codesOfInfo = 255
)

// code is one UNWIND_CODE with its operands.
type code struct {
	at   uint32 // CodeOffset: where the instruction ends
	save bool   // sorts behind an allocation that ends at the same place
	b    []byte // opcode byte, operands
}

// unwinder writes the information of one entry.
type unwinder struct {
	fn       *Func
	lo, hi   uint32 // the entry's ops, by offset
	far      bool   // use the long forms though the short ones would do
	codes    []code
	prolog   uint32 // where the entry's prolog ends
	fpReg    Reg
	fpOff    int64
	hasFP    bool
	base     int64  // the frame's base, from the entry's RSP
	baseFrom uint32 // offset from which on saves can be found by it
	why      string
}

// pdataAMD64 writes the exception directory; xdata places an UNWIND_INFO.
// Every eighth function's is in the long forms of its codes, which real
// compilers use for frames of half a megabyte and more.
func pdataAMD64(im *Image, xdata func(b []byte) (rva uint32)) ([]byte, error) {
	var pdata []byte
	for i := range im.Funcs {
		fn := &im.Funcs[i]
		if fn.NoInfo || fn.Entry == SignalFrame {
			continue
		}
		end := fn.Size
		if fn.Chained != 0 {
			end = fn.Chained
		}
		first, err := describeAMD64(fn, 0, end)
		if err != nil {
			return nil, err
		}
		parent := entryAMD64(fn.RVA, fn.RVA+end, xdata(first))
		pdata = append(pdata, parent...)
		if fn.Chained == 0 {
			continue
		}
		second, err := describeAMD64(fn, fn.Chained, fn.Size)
		if err != nil {
			return nil, err
		}
		second[0] |= chainInfo
		pdata = append(pdata, entryAMD64(fn.RVA+end, fn.End(), xdata(append(second, parent...)))...)
	}
	return pdata, nil
}

// entryAMD64 is a RUNTIME_FUNCTION.
func entryAMD64(begin, end, info uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, begin)
	b = binary.LittleEndian.AppendUint32(b, end)
	return binary.LittleEndian.AppendUint32(b, info)
}

// describeAMD64 writes the UNWIND_INFO of the ops in [lo,hi).
func describeAMD64(fn *Func, lo, hi uint32) ([]byte, error) {
	u := unwinder{fn: fn, lo: lo, hi: hi, far: fn.RVA>>4%8 == 0}
	u.findBase()
	u.run()
	if u.why != "" {
		return nil, errFunc(fn, "%s", u.why)
	}
	slices.SortStableFunc(u.codes, func(a, b code) int {
		if a.at != b.at || a.save == b.save {
			return int(a.at) - int(b.at)
		}
		if a.save {
			return 1
		}
		return -1
	})
	slices.Reverse(u.codes)
	if lo == 0 && fn.Entry != Called {
		u.codes = append(u.codes, code{b: []byte{pushMach | byte(fn.Entry-MachineFrame)<<4}})
	}
	return u.encode()
}

func (u *unwinder) encode() ([]byte, error) {
	frame := byte(0)
	if u.hasFP {
		frame = byte(u.fpReg) | byte(u.fpOff/16)<<4
	}
	b := []byte{1, byte(u.prolog), 0, frame}
	for _, c := range u.codes {
		b = append(append(b, byte(c.at)), c.b...)
	}
	count := (len(b) - 4) / 2
	if u.prolog > maxProlog || count > codesOfInfo {
		return nil, errFunc(u.fn, "a prolog of %d bytes and %d codes", u.prolog, count)
	}
	b[2] = byte(count)
	if count%2 != 0 {
		b = append(b, 0, 0)
	}
	return b, nil
}

// findBase finds the base of saves in the function's first prolog. The base is RSP at the moment when
// the frame pointer is set, or else RSP after the last allocation.
func (u *unwinder) findBase() {
	sp := int64(0)
	for i := range u.fn.Ops {
		op := &u.fn.Ops[i]
		if op.Part != Prolog {
			break
		}
		for _, e := range op.Effects {
			if e.Kind != Add || e.Base != rsp || u.hasFP && e.Reg != rsp {
				continue
			}
			if e.Reg != rsp {
				u.hasFP, u.fpReg, u.fpOff = true, e.Reg, e.Imm
				u.base, u.baseFrom = sp, op.end()
				continue
			}
			sp += e.Imm
			if !u.hasFP {
				u.base, u.baseFrom = sp, op.end()
			}
		}
	}
}

func (o *Op) end() uint32 { return o.Off + uint32(len(o.Code)) }

// run turns the prolog ops of the entry into codes.
func (u *unwinder) run() {
	sp := int64(0)
	for i := range u.fn.Ops {
		op := &u.fn.Ops[i]
		inside := op.Off >= u.lo && op.Off < u.hi && op.Part == Prolog
		if inside {
			u.prolog = op.end() - u.lo
		}
		for _, e := range op.Effects {
			if inside {
				u.effect(op, e, sp)
			}
			if e.Kind == Add && e.Reg == rsp && e.Base == rsp {
				sp += e.Imm
			}
		}
	}
}

// effect writes the code of one effect; sp is RSP before it, from the entry's.
func (u *unwinder) effect(op *Op, e Effect, sp int64) {
	push := len(op.Effects) == 2 // a store and its allocation are one code
	switch {
	case e.Kind == Store && push:
		u.code(op.end(), pushNonvol, byte(e.Reg))
	case e.Kind == Add && e.Reg == rsp && !push:
		u.alloc(op.end(), -e.Imm)
	case e.Kind == Add && e.Base == rsp && e.Reg == u.fpReg:
		u.code(op.end(), setFPReg, 0)
	case e.Kind == Store && nonvolatileRegs(AMD64)>>e.Reg&1 != 0:
		u.save(op, e, sp, saveNonvol, saveFar, 8)
	case e.Kind == StoreV:
		u.save(op, e, sp, saveXMM, saveXMMFar, 16)
	}
}

func (u *unwinder) code(end uint32, op, info byte, operands ...uint16) {
	c := code{at: end - u.lo, b: []byte{op | info<<4}}
	for _, v := range operands {
		c.b = binary.LittleEndian.AppendUint16(c.b, v)
	}
	u.codes = append(u.codes, c)
}

func (u *unwinder) alloc(end uint32, n int64) {
	switch {
	case n <= 0 || n%8 != 0:
		u.why = "an allocation that is not of whole words"
	case n <= smallMax && !u.far:
		u.code(end, allocSmall, byte(n/8-1))
	case n/8 <= scaledMax && (!u.far || n <= smallMax):
		u.code(end, allocLarge, 0, uint16(n/8))
	default:
		u.code(end, allocLarge, 1, uint16(n), uint16(n>>16))
	}
}

// save writes the place of a saved register, relative to the frame's base. The code counts from the
// moment when the base exists. A register that was saved earlier in the caller's home area still has
// its value until then.
func (u *unwinder) save(op *Op, e Effect, sp int64, near, far byte, scale int64) {
	at := sp + e.Imm // from the entry's RSP
	if e.Base != rsp {
		at = u.base + u.fpOff + e.Imm
	}
	off := at - u.base
	end := op.end()
	if u.lo == 0 {
		end = max(end, u.baseFrom)
	}
	switch {
	case off < 0 || off%scale != 0:
		u.why = "a save at an offset that has no encoding"
		return
	case off/scale <= scaledMax && !u.far:
		u.code(end, near, byte(e.Reg), uint16(off/scale))
	default:
		u.code(end, far, byte(e.Reg), uint16(off), uint16(off>>16))
	}
	u.codes[len(u.codes)-1].save = true
}

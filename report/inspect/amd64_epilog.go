package inspect

import (
	"fmt"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// epilogs finds the epilogs of a function by the instruction grammar of version 1. It returns
// the effect of each instruction in an epilog, by address. Epilogs of version 2 have the same
// instructions. The result is for readers only: the walkers have their own decoder. A fragment
// may begin in the middle of an epilog that ends after the fragment, hence pastEnd.
func (r *peReader) epilogs(f *Function, info *peamd64.Info, fn peamd64.RuntimeFunction) map[uint32][2]string {
	out := map[uint32][2]string{}
	size := min(f.Hi-f.Lo, maxCode) + pastEnd
	list := Disassemble(context.ArchAMD64, f.Lo, r.f.Tail(uint32(f.Lo), int(size)))
	for i := len(list) - 1; i >= 0; i-- {
		if !r.returns(&list[i], fn, info.Chained()) {
			continue
		}
		r.backwards(list[:i+1], info, out)
	}
	return out
}

// pastEnd is the number of bytes after a fragment that an epilog of it may use.
const pastEnd = 32

// returns reports whether an instruction ends an epilog.
func (r *peReader) returns(in *Instr, fn peamd64.RuntimeFunction, chained bool) bool {
	b := in.Bytes
	if len(b) > 1 && (b[0] == 0xf2 || b[0] == 0xf3) {
		b = b[1:]
	}
	switch {
	case b[0] == 0xc3 || b[0] == 0xc2:
		return true
	case b[0] == 0xff && len(b) > 1 && b[1] == 0x25:
		return true
	case b[0] == 0x48 && len(b) > 2 && b[1] == 0xff && b[2]>>3&7 == 4:
		return true
	case b[0] == 0xeb && len(b) == 2:
		return r.leaves(in, int64(int8(b[1])), fn, chained)
	case b[0] == 0xe9 && len(b) == 5:
		return r.leaves(in, int64(int32(uint32(b[1])|uint32(b[2])<<8|uint32(b[3])<<16|uint32(b[4])<<24)),
			fn, chained)
	}
	return false
}

// leaves reports whether a jump leaves the function. A jump to another fragment of the function
// does not.
func (r *peReader) leaves(in *Instr, rel int64, fn peamd64.RuntimeFunction, chained bool) bool {
	to := uint32(in.Addr + uint64(len(in.Bytes)) + uint64(rel))
	if fn.Contains(to) {
		return to == fn.Begin && !chained
	}
	other, why := r.f.AMD64().Find(to)
	if why != peamd64.OK {
		return true
	}
	mine, why1 := r.f.AMD64().Primary(fn)
	theirs, why2 := r.f.AMD64().Primary(other)
	if why1 != peamd64.OK || why2 != peamd64.OK || mine.Begin != theirs.Begin {
		return true
	}
	return to == theirs.Begin && !chained
}

// backwards searches from a return back to the epilog's first instruction. It passes pops and the
// instruction that releases the frame. The search goes backwards, because only the end
// distinguishes an epilog from pops in the body.
func (r *peReader) backwards(list []Instr, info *peamd64.Info, out map[uint32][2]string) {
	n := len(list) - 1
	depth, saved := int64(0), ""
	put := func(in *Instr, base string, off int64) {
		out[uint32(in.Addr)] = [2]string{fmt.Sprintf("%s%+d", base, off+8), saved + "ra [cfa-8]"}
	}
	put(&list[n], "rsp", 0)
	for n--; n >= 0; n-- {
		reg, ok := pop(list[n].Bytes)
		if !ok {
			break
		}
		depth += 8
		saved = fmt.Sprintf("%s [cfa%+d], ", amd64Regs[reg], -8-depth) + saved
		put(&list[n], "rsp", depth)
	}
	if n < 0 {
		return
	}
	if base, off, ok := release(list[n].Bytes, info); ok {
		put(&list[n], base, off+depth)
	}
}

func pop(b []byte) (int, bool) {
	switch {
	case len(b) == 1 && b[0]&0xf8 == 0x58:
		return int(b[0] & 7), true
	case len(b) == 2 && b[0]&0xfe == 0x40 && b[1]&0xf8 == 0x58:
		return int(b[1]&7) + int(b[0]&1)*8, true
	}
	return 0, false
}

// release reads add rsp, imm or lea rsp, [frame register + disp].
func release(b []byte, info *peamd64.Info) (base string, off int64, ok bool) {
	if len(b) < 4 || b[0]&0xf8 != 0x48 {
		return "", 0, false
	}
	long := func(b []byte) int64 {
		return int64(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
	}
	reg := int(b[2]&7) + int(b[0]&1)*8
	switch {
	case b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xc4 && len(b) == 4:
		return "rsp", int64(int8(b[3])), true
	case b[0] == 0x48 && b[1] == 0x81 && b[2] == 0xc4 && len(b) == 7:
		return "rsp", long(b[3:]), true
	case b[1] != 0x8d || b[2]>>3&7 != 4 || info.FrameReg == 0 || reg != int(info.FrameReg) || b[2]&7 == 4:
		return "", 0, false
	case b[2]>>6 == 1 && len(b) == 4:
		return amd64Regs[reg], int64(int8(b[3])), true
	case b[2]>>6 == 2 && len(b) == 7:
		return amd64Regs[reg], long(b[3:]), true
	}
	return "", 0, false
}

package wineunwind

import (
	"encoding/binary"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// All points have the same stack, which contains noise. RSP is at a quarter of the stack, so
// that an unwinder can leave frames of up to 3 MiB.
const (
	stackBase = 0x100000000000
	stackSize = 4 << 20
	stackTop  = stackBase + stackSize/4
)

// mix is a hash (SplitMix64's finalizer). It generates the noise.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func stackBytes() []byte {
	b := make([]byte, 0, stackSize)
	for i := range uint64(stackSize / 8) {
		b = binary.LittleEndian.AppendUint64(b, mix(i))
	}
	return b
}

// point is one input of both unwinders: an instruction and its registers.
type point struct {
	rva  uint32
	regs context.AMD64
}

// choose returns the points of up to limit functions of f, spread evenly, and of functions
// with rare unwind codes. loops counts the points that it left out because Wine would loop there.
func choose(f *pe.File, limit int) (pts []point, loops int) {
	for _, i := range functions(f, limit) {
		fn, why := f.AMD64().Resolve(f.AMD64().Entry(i))
		if why != peamd64.OK || fn.End <= fn.Begin {
			continue
		}
		rvas, ins := places(f, fn)
		fr := frameOf(f, fn)
		fr.undeclared(ins)
		for _, rva := range rvas {
			if wineLoops(f, fn, rva) {
				loops++
				continue
			}
			pts = append(pts, point{rva, fr.registers(rva)})
		}
	}
	return pts, loops
}

// maxRare is how many functions of a rare kind are asked about.
const maxRare = 300

// functions gives indices into the exception directory, sorted.
func functions(f *pe.File, limit int) (out []int) {
	n := f.AMD64().Len()
	limit = min(limit, n)
	for i := range limit {
		out = append(out, i*n/limit)
	}
	for i, found := 0, 0; i < n && found < maxRare; i++ {
		if rare(f, i) {
			out = append(out, i)
			found++
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rare tells whether an entry is of version 2 or has a code few have.
func rare(f *pe.File, i int) bool {
	fn, why := f.AMD64().Resolve(f.AMD64().Entry(i))
	info, fault := f.AMD64().Info(fn.Unwind)
	if why != peamd64.OK || !fault.OK() {
		return false
	}
	if info.Version == 2 {
		return true
	}
	for codes := info.Codes; len(codes) > 0; {
		c, why := info.Code(codes)
		if why != peamd64.OK {
			return false
		}
		switch c.Op {
		case peamd64.UWOP_PUSH_MACHFRAME, peamd64.UWOP_SAVE_NONVOL_FAR, peamd64.UWOP_SAVE_XMM128_FAR:
			return true
		case peamd64.UWOP_ALLOC_LARGE:
			if c.Info == 1 {
				return true
			}
		}
		codes = codes[c.Size():]
	}
	return false
}

// frame is what the registers must respect for the answer to be of interest.
type frame struct {
	declared uint32     // bits: frame registers
	pointers uint32     // bits: registers that point into the frame
	distance [16]uint64 // and how far above its base, bytes
	exact    uint32     // bits: those that do so at exactly that distance
	aligned  bool       // XMM registers are saved
	alloc    uint64     // allocated by the codes, bytes
}

// frameOf looks at the unwind information of fn and its parents.
func frameOf(f *pe.File, fn peamd64.RuntimeFunction) (fr frame) {
	fr.pointers = 1 << context.RBP
	for range 33 {
		info, fault := f.AMD64().Info(fn.Unwind)
		if !fault.OK() {
			break
		}
		if info.FrameReg != 0 {
			fr.pointers |= 1 << info.FrameReg
			fr.declared |= 1 << info.FrameReg
			fr.distance[info.FrameReg] = uint64(info.FrameOffset)
		}
		_, codes := info.Epilogs()
		for len(codes) > 0 {
			c, why := info.Code(codes)
			if why != peamd64.OK {
				break
			}
			if c.Op == peamd64.UWOP_ALLOC_SMALL || c.Op == peamd64.UWOP_ALLOC_LARGE {
				fr.alloc += uint64(c.Operand)
			}
			fr.aligned = fr.aligned || c.Op == peamd64.UWOP_SAVE_XMM128 ||
				c.Op == peamd64.UWOP_SAVE_XMM128_FAR
			codes = codes[c.Size():]
		}
		if !info.Chained() {
			break
		}
		var why peamd64.Reason
		if fn, why = f.AMD64().Resolve(info.Parent); why != peamd64.OK {
			break
		}
	}
	return fr
}

// undeclared finds a frame register that the unwind information does not name,
// by the lea rsp, [reg+disp] of the function's epilog: the CLR's compiler makes
// such functions. Windows takes that lea for no epilog and goes by the codes,
// Wine runs it. With the value the register has when the function runs, both
// must come to the same.
func (fr *frame) undeclared(ins []instruction) {
	for i := range ins {
		m, ok := ins[i].Args[1].(x86asm.Mem)
		if ins[i].Op != x86asm.LEA || ins[i].Args[0] != x86asm.RSP || !ok || m.Index != 0 ||
			m.Base < x86asm.RAX || m.Base > x86asm.R15 {
			continue
		}
		r := m.Base - x86asm.RAX
		if r == context.RSP || fr.declared>>r&1 != 0 {
			continue
		}
		fr.pointers |= 1 << r
		fr.exact |= 1 << r
		fr.distance[r] = fr.alloc - uint64(m.Disp)
	}
}

// registers are noise but for RSP and those that point into the frame.
func (fr *frame) registers(rva uint32) (r context.AMD64) {
	seed := uint64(rva) << 32
	for i := range r.GPR {
		r.GPR[i] = mix(seed + uint64(i))
	}
	for i := range r.XMM {
		r.XMM[i] = context.XMM{mix(seed + 32 + uint64(i)), mix(seed + 64 + uint64(i))}
	}
	r.Known = allKnown
	sp := stackTop + mix(seed+100)%0x8000&^15
	if !fr.aligned {
		sp += mix(seed+101) & 8
	}
	r.GPR[context.RSP] = sp
	for i := range r.GPR {
		if fr.pointers>>i&1 != 0 {
			// Above what the body has allocated since: alloca.
			r.GPR[i] = sp + fr.distance[i]
			if fr.exact>>i&1 == 0 {
				r.GPR[i] += mix(seed+110+uint64(i)) % 64 * 16
			}
		}
	}
	return r
}

// instruction is one of a function's, decoded from its begin on.
type instruction struct {
	rva uint32
	x86asm.Inst
}

const (
	maxSweep  = 16 << 10 // bytes of a function that are decoded from its begin on
	tailBytes = 64
	maxEnds   = 6 // epilogs inside a function
)

// sweep decodes code at rva. What is no instruction is one of a byte.
func sweep(code []byte, rva uint32) (out []instruction) {
	for len(code) > 0 {
		in, err := x86asm.Decode(code, 64)
		if err != nil || in.Len == 0 {
			in = x86asm.Inst{Len: 1}
		}
		out = append(out, instruction{rva, in})
		code, rva = code[in.Len:], rva+uint32(in.Len)
	}
	return out
}

// places gives the addresses of fn that are asked about, sorted, and its
// instructions.
func places(f *pe.File, fn peamd64.RuntimeFunction) (out []uint32, ins []instruction) {
	out = append(out, fn.Begin)
	info, fault := f.AMD64().Info(fn.Unwind)
	prolog := fn.Begin
	if fault.OK() {
		prolog += uint32(info.Prolog)
		for _, codes := info.Epilogs(); len(codes) > 0; {
			c, why := info.Code(codes)
			if why != peamd64.OK {
				break
			}
			out = append(out, fn.Begin+uint32(c.Offset))
			codes = codes[c.Size():]
		}
	}
	ins = sweep(f.Tail(fn.Begin, int(min(fn.End-fn.Begin, maxSweep))), fn.Begin)
	if fn.End-fn.Begin > maxSweep {
		at := fn.End - 4*tailBytes
		ins = append(ins, sweep(f.Tail(at, 4*tailBytes), at)...)
	}
	for i := range ins {
		if rva := ins[i].rva; rva < prolog || fn.End-rva <= tailBytes {
			out = append(out, rva)
		}
	}
	if len(ins) > 0 {
		for k := range uint64(3) {
			out = append(out, ins[mix(uint64(fn.Begin)+k)%uint64(len(ins))].rva)
		}
	}
	out = append(out, ends(ins)...)
	if _, covered := f.AMD64().Lookup(fn.End); !covered && len(f.Tail(fn.End, 1)) == 1 {
		out = append(out, fn.End)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out),
		func(rva uint32) bool { return len(f.Tail(rva, 1)) == 0 }), ins
}

// ends gives the last instructions before returns, and jumps.
func ends(ins []instruction) (out []uint32) {
	found := 0
	for i := range ins {
		if ins[i].Op != x86asm.RET && ins[i].Op != x86asm.JMP {
			continue
		}
		if found++; found > maxEnds {
			break
		}
		for k := max(0, i-5); k <= i; k++ {
			out = append(out, ins[k].rva)
		}
	}
	return out
}

// wineLoops reports whether Wine 8 would not come back: looking for an epilog
// it follows jumps inside a function, round and round.
func wineLoops(f *pe.File, fn peamd64.RuntimeFunction, rva uint32) bool {
	for range 64 {
		in, err := x86asm.Decode(f.Tail(rva, 16), 64)
		if err != nil {
			return false
		}
		next := rva + uint32(in.Len)
		rel, jump := in.Args[0].(x86asm.Rel)
		switch {
		case in.Op == x86asm.JMP && jump:
			next += uint32(int32(rel))
		case in.Op != x86asm.POP && in.Op != x86asm.ADD && in.Op != x86asm.LEA:
			return false
		}
		if rva = next; !fn.Contains(rva) {
			return false
		}
	}
	return true
}

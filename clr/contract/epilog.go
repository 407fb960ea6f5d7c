package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
)

// maxEpilog is the longest epilogue: an adjustment, pops, a jump.
const maxEpilog = 40

// code reads the up to maxEpilog bytes at ip; at the end of a page fewer.
func (t *Tables) code(ip uint64) []byte {
	if b, ok := t.v.bytes(ip, maxEpilog); ok {
		return b
	}
	b, ok := t.v.bytes(ip, int(min(maxEpilog, 4096-ip&4095)))
	if !ok {
		return nil
	}
	return b
}

// epilog runs the code at the ip if it is the rest of an epilogue, and says
// whether it was. The stack pointer then stands at the return address.
func (x *execution) epilog(e *located) bool {
	p := epilog{code: x.t.code(x.to.RIP), e: e, ip: x.to.RIP}
	try := *x
	if !p.adjust(&try) {
		return false
	}
	for {
		reg, ok := p.pop()
		if !ok {
			break
		}
		try.restore(reg, try.sp)
		try.sp += 8
	}
	if !p.leaves() {
		return false
	}
	*x = try
	return true
}

// epilog reads the grammar of Microsoft's x64 epilogues.
type epilog struct {
	code []byte
	pos  int
	ip   uint64
	e    *located
}

// peek gives n bytes without taking them, nil if there are fewer.
func (p *epilog) peek(n int) []byte {
	if n > len(p.code)-p.pos {
		return nil
	}
	return p.code[p.pos : p.pos+n]
}

// has reports whether the code goes on with want.
func (p *epilog) has(want ...byte) bool {
	return string(p.peek(len(want))) == string(want)
}

// adjust takes add rsp, imm or lea rsp, [frame register + disp], if one is
// there. False: what is there is wrong.
func (p *epilog) adjust(x *execution) bool {
	switch {
	case p.has(0x48, 0x83, 0xc4):
		b := p.peek(4)
		if b == nil {
			return false
		}
		x.sp += uint64(int64(int8(b[3])))
		p.pos += 4
	case p.has(0x48, 0x81, 0xc4):
		b := p.peek(7)
		if b == nil {
			return false
		}
		x.sp += uint64(int64(int32(binary.LittleEndian.Uint32(b[3:]))))
		p.pos += 7
	default:
		return p.lea(x)
	}
	return true
}

// lea takes lea rsp, [frame register + disp].
func (p *epilog) lea(x *execution) bool {
	b := p.peek(4)
	fp := p.e.info[3] & 15
	if b == nil || b[0]&0xfe != 0x48 || b[1] != 0x8d || b[2]>>3&7 != context.RSP {
		return true // none
	}
	if fp == 0 || b[2]&7 != fp&7 || b[0]&1 != fp>>3 || fp&7 == context.RSP || x.to.Known>>fp&1 == 0 {
		return false
	}
	switch b[2] >> 6 {
	case 1:
		x.sp = x.to.GPR[fp] + uint64(int64(int8(b[3])))
		p.pos += 4
	case 2:
		if b = p.peek(7); b == nil {
			return false
		}
		x.sp = x.to.GPR[fp] + uint64(int64(int32(binary.LittleEndian.Uint32(b[3:]))))
		p.pos += 7
	default:
		return false
	}
	return true
}

// pop takes pop r64.
func (p *epilog) pop() (byte, bool) {
	high, n := byte(0), 1
	if p.has(0x41) {
		high, n = 8, 2
	}
	b := p.peek(n)
	if b == nil || b[n-1]&0xf8 != 0x58 {
		return 0, false
	}
	p.pos += n
	return b[n-1]&7 | high, true
}

// leaves reports whether the code goes on with what ends an epilogue: a return
// or a tail jump.
func (p *epilog) leaves() bool {
	if p.has(0xf2) || p.has(0xf3) {
		p.pos++
	}
	at := p.ip + uint64(p.pos)
	switch {
	case p.has(0xc3), p.has(0xc2), p.has(0xff, 0x25):
		return true
	case p.has(0xeb):
		b := p.peek(2)
		return b != nil && p.outside(at+2+uint64(int64(int8(b[1]))))
	case p.has(0xe9):
		b := p.peek(5)
		return b != nil && p.outside(at+5+uint64(int64(int32(binary.LittleEndian.Uint32(b[1:])))))
	}
	b := p.peek(3)
	return b != nil && b[0]&0xf8 == 0x48 && b[1] == 0xff && b[2]>>3&7 == 4
}

// outside reports whether a jump's target is not in the function, or is its
// very first byte.
func (p *epilog) outside(to uint64) bool {
	chained := p.e.info[0]>>3&flagChain != 0
	return to < p.e.Begin || to >= p.e.End || to == p.e.Begin && !chained
}

package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// code reads the up to amd64.MaxEpilog bytes at ip; at the end of a page fewer.
func (t *Tables) code(ip uint64) []byte {
	if b, ok := t.v.bytes(ip, amd64.MaxEpilog); ok {
		return b
	}
	b, ok := t.v.bytes(ip, int(min(amd64.MaxEpilog, 4096-ip&4095)))
	if !ok {
		return nil
	}
	return b
}

// epilog runs the code at the ip if it is the rest of an epilogue, and says
// whether it was. The stack pointer then stands at the return address.
func (x *execution) epilog(e *located) bool {
	ip, try := x.to.RIP, *x
	p, ok := amd64.ReadEpilog(x.t.code(ip), e.info[3]&15)
	if !ok {
		return false
	}
	if p.Moves {
		if p.Base != context.RSP && x.to.Known>>p.Base&1 == 0 {
			return false
		}
		try.sp = x.to.GPR[p.Base] + p.Disp
	}
	for reg, ok := p.Pop(); ok; reg, ok = p.Pop() {
		try.restore(reg, try.sp)
		try.sp += 8
	}
	// Last, since it reads the target and the code lies in the view's buffer.
	if p.Jumps && !x.t.leaves(e, ip+p.Target) {
		return false
	}
	*x = try
	return true
}

// leaves reports whether a jump to an address leaves e's function: to its very
// first byte it is a call of itself, to another of its fragments it is none.
func (t *Tables) leaves(e *located, to uint64) bool {
	if to >= e.Begin && to < e.End {
		return to == e.Begin && !chained(e.info)
	}
	other, reason := t.locate(to)
	if reason != Found || other.Kind == Stub {
		return true
	}
	mine, ok := t.primary(e)
	theirs, ok2 := t.primary(other)
	return !ok || !ok2 || mine != theirs || to == mine
}

// primary is the begin of the function that e is a fragment of: what its
// unwind information is chained to, however far.
func (t *Tables) primary(e *located) (begin uint64, ok bool) {
	begin, info := e.Begin, e.info
	for range maxChain {
		if !chained(info) {
			return begin, true
		}
		parent := info[len(info)-functionSize:]
		begin = e.Base + uint64(binary.LittleEndian.Uint32(parent))
		var r Reason
		if info, r = t.info(e.Base + uint64(binary.LittleEndian.Uint32(parent[8:])&^1)); r != Found {
			return 0, false
		}
	}
	return 0, false
}

// chained reports whether unwind information ends with a parent.
func chained(info []byte) bool { return info[0]>>3&flagChain != 0 }

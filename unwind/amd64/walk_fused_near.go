package amd64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// fusedNear is fused for PE functions: it uses cached rules of return addresses with slots near the CFA. Each
// line is a check of stepNear; a failed check is left to stepNear and the other steps out of a PE function.
func (u *rules) fusedNear(r Rule, regs *Registers, t *section) (n int) {
	pc, sp, bp := regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP]
	data, low, cur := t.hot.Data[:len(t.hot.Data):len(t.hot.Data)], t.hot.Addr, uint64(t.first)
	for out := t.out; n < len(out); {
		if r.bits&(exactBit|managedBit|15) != uint64(RuleNear) {
			break
		}
		cfa := sp + r.bits>>offsetShift&maxNear<<3
		at := int(cfa - low)
		if cfa <= sp || at < 8 || at > len(data) {
			break
		}
		ra := binary.LittleEndian.Uint64(data[at-8 : at])
		if ra == 0 {
			break
		}
		caller := bp
		if k := r.bits >> (nearShift + 4) & 15; k != 0 {
			at += nearAbove - int(8*k)
			if at < 0 || at > len(data)-8 {
				break
			}
			caller = binary.LittleEndian.Uint64(data[at:])
		}
		f := &out[n]
		f.IP, f.SP, f.FP, f.CFA = pc, sp, bp, cfa
		f.Module = int32(r.bits >> moduleShift & 0xffff)
		f.Kind = unwind.KindNative
		f.Trust = unwind.TrustUnwindInfo
		f.Exact = false
		t.log[n&(logSize-1)] = r.bits
		n++
		pc, sp, bp = ra, cfa, caller
		next := uint64(u.after[cur&(cacheSize-1)])
		if e := &u.cache[next&(cacheSize-1)]; e.addr == ra-1 {
			r = e.rule
		} else {
			r, next = u.follows(cur, ra-1)
		}
		if cur = next; r.bits == 0 {
			break
		}
	}
	t.next = r
	regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP] = pc, sp, bp
	return n
}

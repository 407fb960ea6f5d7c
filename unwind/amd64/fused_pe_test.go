package amd64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Stacks of PE functions, and of a System V module's among them.

const (
	peText   = 1 << 20 // RVA of the functions, fnSize each
	peFns    = 64
	peBody   = 0x60 // where the body begins: after every prolog
	peEpilog = 0xa0
)

// anyPE makes a random function: one that fused steps can leave if plain, else also others.
func anyPE(rnd *rand.Rand, plain bool) (unwindInfo, epilog []byte) {
	regs := []byte{context.RBX, context.RBP, context.RSI, context.RDI, context.R12,
		context.R13, context.R14, context.R15}
	rnd.Shuffle(len(regs), func(i, j int) { regs[i], regs[j] = regs[j], regs[i] })
	pushes, frame := regs[:rnd.IntN(len(regs)+1)], byte(0)
	at, words := byte(2*len(pushes)+4), byte(rnd.IntN(8))
	var codes []byte
	if rest := regs[len(pushes):]; len(rest) > 0 && rnd.IntN(2) == 0 { // into the home area, or the frame
		codes = append(codes, at+16, rest[0]<<4|4, words+1+byte(len(pushes))+1+byte(rnd.IntN(3)), 0)
	}
	kind := rnd.IntN(12)
	if !plain && kind == 0 {
		codes = append(codes, at+12, 0x68, 0, 0)
	}
	if !plain && kind == 1 {
		codes, frame = append(codes, at+8, 3), 5
	}
	codes = append(codes, at, words<<4|2)
	epilog = []byte{0x48, 0x83, 0xc4, 8 * (words + 1)}
	for i := len(pushes) - 1; i >= 0; i-- {
		codes = append(codes, byte(2*i+2), pushes[i]<<4)
	}
	for _, reg := range pushes[:] {
		epilog = append(epilog, 0x40|reg>>3, 0x58|reg&7)
	}
	if !plain && kind == 3 && rnd.IntN(4) == 0 {
		return info(5, 0, 0, 0), nil
	}
	return info(1, 0, peBody-1, frame, codes...), append(epilog, 0xc3)
}

// fusedPE makes an image of such functions. Some are chained to the one before. If not
// plain, some have no entry, and some are called by an interrupt.
func fusedPE(rnd *rand.Rand, plain bool) (im *pe.File, interrupts [peFns]bool) {
	fns, codes := []peamd64.RuntimeFunction{}, pe.Block{RVA: peInfo}
	text := pe.Block{RVA: peText, Data: make([]byte, fnSize*peFns)}
	for i := range peFns {
		data, epilog := anyPE(rnd, plain)
		fn := peamd64.RuntimeFunction{Begin: uint32(peText + fnSize*i), End: uint32(peText + fnSize*(i+1)),
			Unwind: peInfo + uint32(len(codes.Data))}
		if i > 0 && rnd.IntN(8) == 0 && len(fns) > 0 {
			data = chained(0, fns[len(fns)-1], 0, context.R14<<4)
		} else if interrupts[i] = !plain && rnd.IntN(12) == 0; interrupts[i] {
			data = info(1, 0, 0, 0, 0, 0x0a)
		}
		code := text.Data[fnSize*i:][:fnSize]
		for j := range code {
			code[j] = 0x90
		}
		copy(code[peEpilog:], epilog)
		if plain || rnd.IntN(16) != 0 {
			fns = append(fns, fn)
		}
		codes.Data = append(codes.Data, data...)
	}
	return pe.FromBlocks(pe.MachineAMD64, entries(fns...), []pe.Block{text, codes}), interrupts
}

// mixed lays out stacks of functions of both modules.
type mixed struct {
	stack   *stack
	rnd     *rand.Rand
	image   *pe.File
	machine [peFns]bool // functions of the image that an interrupt calls
	kinds   []fusedFn   // of the System V module; none: only functions of the image
	sp      uint64
	exact   bool         // the next frame was interrupted
	setBP   func(uint64) // sets RBP in the next frame; nil: an earlier frame has used it
	put     func(ip uint64)
}

func (m *mixed) lay(frames int) Registers {
	for i := uint64(0); i < stackSize; i += 8 {
		m.stack.Set(stackLow+i, m.rnd.Uint64())
	}
	m.sp = stackLow + 8*m.rnd.Uint64N(40)
	r := start(0, m.sp)
	for i := range r.GPR {
		if i != context.RSP {
			r.GPR[i] = m.rnd.Uint64()
		}
	}
	m.exact = true
	m.put, m.setBP = func(ip uint64) { r.RIP = ip }, func(v uint64) { r.GPR[context.RBP] = v }
	for range m.rnd.IntN(frames) {
		if len(m.kinds) > 0 && m.rnd.IntN(3) == 0 {
			m.systemV()
		} else {
			m.windows()
		}
		if m.sp > stackLow+stackSize-512 {
			return r
		}
	}
	m.put([]uint64{jitIP, 0, at(0) + 1<<40}[m.rnd.IntN(3)])
	return r
}

func (m *mixed) systemV() {
	k := m.rnd.IntN(len(m.kinds))
	for m.kinds[k].rbp {
		k = m.rnd.IntN(len(m.kinds))
	}
	m.put(at(k))
	m.leave(m.sp+m.kinds[k].size, m.sp+m.kinds[k].size-8*m.kinds[k].slots[1], m.kinds[k].slots[1] != 0)
}

// windows lays a frame of the image. An interrupted one may be anywhere in its function.
func (m *mixed) windows() {
	k := m.rnd.Uint64N(peFns)
	a := unwind.Address{IP: peText + fnSize*k + peBody + m.rnd.Uint64N(8), Exact: m.exact}
	switch {
	case m.machine[k]:
		m.put(peBase + a.IP)
		rip := m.sp
		m.put, m.exact = func(v uint64) { m.stack.Set(rip, v) }, true
		m.stack.Set(rip+24, rip+40)
		m.sp += 40
		return
	case a.Exact && m.rnd.IntN(2) == 0:
		a.IP = a.IP&^(fnSize-1) + m.rnd.Uint64N(fnSize)
	case m.rnd.IntN(8) == 0:
		a.IP = a.IP&^(fnSize-1) + peEpilog
	}
	p, ok := compilePE(m.image.AMD64(), a)
	if !ok || p.base == context.RBP && m.setBP == nil || p.base != context.RSP && p.base != context.RBP {
		p = peRule{cfa: 8, base: context.RSP}
	}
	m.put(peBase + a.IP)
	cfa := m.sp + uint64(int64(p.cfa))
	if p.base == context.RBP {
		cfa = m.sp + 8*(1+m.rnd.Uint64N(20))
		m.setBP(cfa - uint64(int64(p.cfa)))
		m.setBP = nil
	}
	at := cfa + 8*uint64(int64(p.low)+int64(p.slots[peSlot[context.RBP]]))
	m.leave(cfa, at, p.saved>>context.RBP&1 != 0)
}

// leave makes the frame that is laid end at cfa. If it saves RBP it does so at bp.
func (m *mixed) leave(cfa, bp uint64, saves bool) {
	ra := cfa - 8
	m.put = func(v uint64) { m.stack.Set(ra, v) }
	if saves && bp-stackLow < stackSize-8 {
		m.setBP = func(v uint64) { m.stack.Set(bp, v) }
	}
	m.sp, m.exact = cfa, false
}

// Walks over PE functions. Fused steps leave some kinds of them to single steps. In one case,
// modules of both systems share a stack, as under Wine.
func TestFusedPEAgreesWithStep(t *testing.T) {
	for _, c := range []struct {
		name          string
		plain, beside bool
		stops         []unwind.Stop
	}{
		{name: "functions with slots near the CFA", plain: true},
		{name: "every kind", stops: []unwind.Stop{unwind.BadInfo}},
		{name: "beside System V functions", plain: true, beside: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stack := newStack()
			f := walktest.Fused{
				New: newCached, Section: logSize, Low: stackLow, Stack: stack.Data,
				Functions: func(rnd *rand.Rand) (*module.Table, func(int) context.Registers) {
					m := mixed{stack: stack, rnd: rnd}
					m.image, m.machine = fusedPE(rnd, c.plain || rnd.IntN(2) == 0)
					modules := []module.Module{{ID: 1, Start: peBase,
						End: peBase + 1<<28, Bias: peBase, PE: m.image}}
					if c.beside {
						var fns []fn
						fns, m.kinds = fusedFns(rnd)
						modules = append(modules, *makeTable(t, 1, fns...).At(0))
					}
					table := module.NewTable(1, modules, []memory.Range{{Start: jitLo, End: jitHi}})
					return table, func(frames int) context.Registers { return context.FromAMD64(m.lay(frames)) }
				},
				Forget: func(rnd *rand.Rand, r *context.Registers) {
					r.AMD64.Known = r.AMD64.Known&rnd.Uint32() | 1<<context.RSP
				},
				Managed: memory.Range{Start: peBase + peText + 60*fnSize, End: peBase + peText + 61*fnSize},
				Stops:   c.stops,
			}
			f.Run(t)
		})
	}
}

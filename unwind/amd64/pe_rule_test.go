package amd64

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
)

func TestPERuleSize(t *testing.T) {
	n := unsafe.Sizeof(peRule{})
	expect.True(t, n <= 64, "%d bytes, want at most a cache line", n)
}

// peTwice steps by rule and by unwind information, compares the results except
// unknown registers, and reports whether a rule was made.
func peTwice(t *testing.T, u, slow *Unwinder, regs Registers, exact bool,
	mem *memory.Window, b *unwind.Bounds) bool {
	t.Helper()
	start, want := regs, regs
	var f, g unwind.Frame
	var got [2]Registers
	e2, stop2 := stepOf(slow, &want, exact, mem, b, &g)
	for i := range got { // a miss, then a hit
		got[i] = start
		e1, stop1 := stepOf(u, &got[i], exact, mem, b, &f)
		if stop1 != stop2 || e1 != e2 || f != g || !sameKnown(&got[i], &want) ||
			stop1 == unwind.StopNone && u.trust != slow.trust {
			t.Fatalf("at %#x exact %v:\nrule %v %v %+v %x\ninfo %v %v %+v %x", start.RIP, exact, stop1, e1,
				f, got[i], stop2, e2, g, want)
		}
	}
	k := u.lookup(unwind.Address{IP: start.RIP, Exact: exact}).Kind()
	return k == RuleSlotsPE || forms[k].slots != 0
}

func sameKnown(a, b *Registers) bool {
	same := a.RIP == b.RIP && a.Known == b.Known && a.SP() == b.SP()
	for i := range a.GPR {
		same = same && (a.Known>>i&1 == 0 || a.GPR[i] == b.GPR[i])
	}
	for i := range a.XMM {
		same = same && (a.Known>>(16+i)&1 == 0 || a.XMM[i] == b.XMM[i])
	}
	return same
}

// peBoth is an unwinder with rules and one without over an image.
func peBoth(im *pe.File) (u, slow *Unwinder) {
	u, slow = peUnwinder(im), peUnwinder(im)
	slow.DisableCache(true)
	return u, slow
}

// TestPERuleKinds: every kind of step but a leaf that has called has a rule, in
// any window: whole, beside the hot run, cut above or below.
func TestPERuleKinds(t *testing.T) {
	whole := peMemory()
	data, _ := whole.Bytes(peStack, 0x20000)
	windows := map[string]*memory.Window{
		"whole": whole,
		"beside": memory.New(memory.Run{Addr: peStack, Data: data},
			memory.Run{Addr: 1 << 40, Data: make([]byte, 0x40000)}),
		"none": memory.New(),
	}
	for cut := uint64(0); cut < 0x80; cut += 8 {
		windows["cut below"+string(rune('0'+cut/8))] = memory.New(memory.Run{Addr: peRSP + cut,
			Data: data[peRSP-peStack+cut:]})
		windows["cut above"+string(rune('0'+cut/8))] = memory.New(memory.Run{Addr: peStack,
			Data: data[:peRSP-peStack+cut]})
	}
	for name, k := range peKinds() {
		u, slow := peBoth(k.im)
		for window, mem := range windows {
			for _, known := range []uint32{context.AMD64All,
				context.AMD64All &^ (1 << context.RBP), 1 << context.RSP} {
				for _, b := range []*unwind.Bounds{nil, {Low: peStack, High: peRSP + 0x30}} {
					regs := peRegs(peFn + k.into)
					regs.Known = known
					expect.True(t, peTwice(t, u, slow, regs, true, mem, b), "%s, %s: no rule", name, window)
					peTwice(t, u, slow, regs, false, mem, b)
				}
			}
		}
	}
}

// TestPERuleExact: an interrupted ip and the return address after it have the same
// look-up address but may have different rules.
func TestPERuleExact(t *testing.T) {
	im := peImage(info(1, 0, 4, 0, 4, 0x42),
		[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x28, 0xc3})
	for _, first := range []bool{false, true} {
		u, slow := peBoth(im)
		for range 3 {
			for _, exact := range []bool{first, !first} {
				rip := uint32(5) // its look-up address is that of the return address 6
				if !exact {
					rip = 6
				}
				regs, f := peRegs(peFn+rip), unwind.Frame{}
				_, stop := stepOf(u, &regs, exact, peMemory(), nil, &f)
				expect.True(t, stop == unwind.StopNone && (u.trust == unwind.TrustEpilog) == exact,
					"exact %v: %v %v", exact, stop, u.trust)
				peTwice(t, u, slow, peRegs(peFn+rip), exact, peMemory(), nil)
			}
		}
	}
}

// TestPERuleRefused: a step that no rule can express is made by unwind information.
func TestPERuleRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"machine frame":                            info(1, 0, 0, 0, 0, 0x0a),
		"bad operation":                            info(1, 0, 0, 0, 0, 0x0f),
		"stack pointer saved":                      info(1, 0, 9, 0, 9, 0x44, 2, 0),
		"frame register read before it is used":    info(1, 0, 9, 0x05, 9, 0x50, 8, 3),
		"saves in a frame, stack pointer past it":  info(1, 0, 9, 0x05, 9, 0x34, 2, 0),
		"frame register declared, used by nothing": info(1, 0, 9, 0x05, 9, 0x42),
		"volatile register pushed":                 info(1, 0, 9, 0, 9, 0x00),
		"save at an odd place":                     info(1, 0, 9, 0, 9, 0x35, 3, 0, 0, 0),
		"save beyond 16 bits":                      info(1, 0, 9, 0, 9, 0x35, 0, 0, 0x10, 0),
		"frame beyond 31 bits":                     info(1, 0, 9, 0, 9, 0x11, 0, 0, 0, 0x80),
	} {
		u, slow := peBoth(peImage(b, nil))
		for _, exact := range []bool{true, false} {
			expect.True(t, !peTwice(t, u, slow, peRegs(peFn+0x20), exact, peMemory(), nil),
				"%s: a rule", name)
		}
	}
}

// TestPERuleRandom compares on random unwind data that is mostly well formed.
func TestPERuleRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	mem, u, slow, rules, gen := peMemory(), New(), New(), 0, uint32(0)
	slow.DisableCache(true)
	ops := []byte{0, 0, 0, 0, 1, 2, 2, 3, 4, 8, 8, 5, 9}
	const images, points = 2000, 8
	for range images {
		var codes []byte
		for n := rnd.IntN(8); n > 0; n-- {
			op := ops[rnd.IntN(len(ops))] | byte(rnd.IntN(16))<<4
			codes = append(codes, byte(40-4*len(codes)/2), op, byte(rnd.IntN(32)), 0)
			if op&15 == 0 || op&15 == 2 || op&15 == 3 {
				codes = codes[:len(codes)-2]
			}
		}
		code := make([]byte, peLen)
		for i := range code {
			code[i] = []byte{0x90, 0x5b, 0x5d, 0x41, 0x5c, 0xc3, 0xeb, 0x48, 0x83, 0xc4, 0x8d}[rnd.IntN(11)]
		}
		frame := []byte{0, 0, 0, 5, 0x25, 0x0c}[rnd.IntN(6)]
		gen++
		table := peTableGen(gen, peImage(info(byte(1+rnd.IntN(8)/7), 0, 40, frame, codes...), code), peBase)
		u.SetTable(table)
		slow.SetTable(table)
		for range points {
			regs := peRegs(uint32(peFn + rnd.IntN(peLen)))
			if rnd.IntN(4) == 0 {
				regs.Known = rnd.Uint32()&context.AMD64All | 1<<context.RSP
			}
			if peTwice(t, u, slow, regs, rnd.IntN(2) == 0, mem, nil) {
				rules++
			}
		}
	}
	expect.True(t, rules >= images*points/4, "only %d rules", rules)
}

// TestPERuleVectors: nearly all points recorded from real programs have a rule,
// which has the same effect as the unwind information.
func TestPERuleVectors(t *testing.T) {
	for _, file := range []string{"exec", "native", "synth", "winetest"} {
		var stacks pevec.Stacks
		points, rules := 0, 0
		eachPE(t, "amd64-"+file, func(v *pevec.Vector) error {
			u, slow := New(), New()
			u.SetTable(peTable(v.Image(), uint64(v.Base)))
			slow.SetTable(u.Table())
			slow.DisableCache(true)
			for i := range v.Points {
				mem, err := stacks.Window(v, &v.Points[i])
				if err != nil {
					return err
				}
				regs, err := v.AMD64(&v.Points[i])
				if err != nil {
					return err
				}
				points++
				for _, exact := range []bool{true, false} {
					if peTwice(t, u, slow, regs, exact, mem, nil) && exact {
						rules++
					}
				}
			}
			return nil
		})
		t.Logf("amd64-%s: %d of %d points have a rule", file, rules, points)
		// The rest are machine frames and functions made to have frames of
		// half a megabyte.
		expect.True(t, rules >= points*88/100,
			"amd64-%s: only %d of %d points have a rule", file, rules, points)
	}
}

// TestPERulesFull: if there is no room for another rule, all rules are dropped.
func TestPERulesFull(t *testing.T) {
	const n = maxPERules + 100
	fns := make([]peamd64.RuntimeFunction, n)
	blocks := []pe.Block{{RVA: 0, Data: make([]byte, 16*n+0x1000)}}
	infos := pe.Block{RVA: 1 << 24}
	for i := range fns {
		fns[i] = peamd64.RuntimeFunction{Begin: uint32(16*i + 16), End: uint32(16*i + 32),
			Unwind: 1<<24 + uint32(len(infos.Data))}
		infos.Data = append(infos.Data, info(1, 0, 0, 0, 0, 0x01, byte(i+512), byte((i+512)>>8))...)
	}
	im := pe.FromBlocks(pe.MachineAMD64, entries(fns...), append(blocks, infos))
	u, slow := peBoth(im)
	for round := range 2 {
		for i := range fns {
			must.True(t, peTwice(t, u, slow, peRegs(fns[i].Begin+8), true, peMemory(), nil),
				"round %d: no rule for %d", round, i)
		}
	}
	expect.True(t, u.pe.n <= maxPERules, "%d rules", u.pe.n)
}

// TestPERuleHomes: a rule whose highest word is the upper half of an XMM register, in the caller's home area.
func TestPERuleHomes(t *testing.T) {
	regs, p := symbols, peRule{kept: windowsKept}
	regs.XMM[0][0] = regs.GPR[context.RSP] + 16 | isLoaded
	expect.True(t, p.saves(&regs) && p.low == -1 && p.size == 5, "%d words from %d", p.size, p.low)
}

// TestHalfXMM: if half of an XMM register is missing, the register becomes unknown.
func TestHalfXMM(t *testing.T) {
	mem := memory.New(memory.Run{Addr: 0x1000, Data: make([]byte, 24)})
	for at, want := range map[uint64]bool{0xff8: false, 0x1000: true, 0x1008: true, 0x1010: false} {
		s := peStep{regs: &Registers{Known: context.AMD64All}, mem: mem}
		s.loadXMM(6, at)
		expect.True(t, s.regs.Known>>16&1 != 0 == want, "at %#x: known %v", at, !want)
	}
}

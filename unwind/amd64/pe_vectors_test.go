package amd64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
)

// eachPE calls f for every vector of a file; it skips where there is none.
func eachPE(t testing.TB, file string, f func(*pevec.Vector) error) {
	t.Helper()
	n, err := pevec.Each(file+".jsonl.gz", f)
	if errors.Is(err, pevec.ErrAbsent) {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	must.True(t, err == nil && n != 0, "%v %v %v", file, n, err)
}

// TestPEParts: a step says how it was found, and whether a machine frame was
// left, at every point of the vectors.
func TestPEParts(t *testing.T) {
	for _, file := range []string{"exec", "native", "synth", "winetest"} {
		t.Run(file, func(t *testing.T) {
			var stacks pevec.Stacks
			parts, called := map[PEPart]int{}, 0
			eachPE(t, "amd64-"+file, func(v *pevec.Vector) error {
				im, u := v.Image(), New()
				u.SetTable(peTable(im, uint64(v.Base)))
				for i := range v.Points {
					p := &v.Points[i]
					mem, err := stacks.Window(v, p)
					if err != nil {
						return err
					}
					regs, err := v.AMD64(p)
					if err != nil {
						return err
					}
					walked, f := regs, unwind.Frame{}
					res, stop := StepPE(im.AMD64(),
						unwind.Address{IP: uint64(*p.PC), Exact: !p.AfterCall}, &regs, mem)
					exact, stepped := stepOf(u, &walked, !p.AfterCall, mem, nil, &f)
					if stop != unwind.StopNone || stepped != unwind.StopNone {
						continue // the judge says whether that is right
					}
					parts[res.Part]++
					if fn, why := im.AMD64().Find(uint32(*p.PC) - 1); p.AfterCall && why == peamd64.OK {
						called++
						size, least := f.CFA-f.SP, im.AMD64().LeastFrame(fn, uint32(*p.PC)-1)
						expect.True(t, size >= least, "%s pc %#x: a frame of %d bytes", v.ID, *p.PC, size)
					}
					machine := v.MachineFrame != 0 && res.Machine
					if exact != machine || f.CFA != regs.GPR[4] || u.trust != peTrust[res.Part] {
						t.Errorf("%s pc %#x %s %q: exact %v, CFA %#x, trust %v of %v", v.ID, uint64(*p.PC),
							p.Where, p.Ins, exact, f.CFA, u.trust, res.Part)
					}
				}
				return nil
			})
			expect.Figures(t, parts[PECode] != 0, "amd64-%s: steps by part: %v, %d from a return address",
				file, parts, called)
			expect.True(t, called != 0 || file != "exec", "no step from a return address")
		})
	}
}

// Functions step as StepFunction does, if they have a rule. Functions that save XMM registers, or whose frame
// register is not RBP, have none.
func TestFunctionRules(t *testing.T) {
	const base, number = 0x7f00_0000_0000, 7
	shares := map[string]int{"exec": 79, "native": 27, "synth": 82, "winetest": 42} // percent, at least
	for file, least := range shares {
		t.Run(file, func(t *testing.T) {
			var stacks pevec.Stacks
			all, byRule, single := 0, 0, 0
			eachPE(t, "amd64-"+file, func(v *pevec.Vector) error {
				table := v.Image().AMD64()
				for i := range v.Points {
					p := &v.Points[i]
					pc := unwind.Address{IP: uint64(*p.PC), Exact: !p.AfterCall}
					entry, _ := table.Lookup(uint32(pc.Lookup()))
					fn, why := table.Resolve(entry)
					mem, err := stacks.Window(v, p)
					if err != nil {
						return err
					}
					regs, err := v.AMD64(p)
					if err != nil {
						return err
					}
					if why != peamd64.OK {
						continue
					}
					want := regs
					res, stop := StepFunction(table, fn, uint32(pc.IP), pc.Exact, &want, mem)
					if stop == unwind.StopNone && !res.Machine {
						all++
					}
					at := unwind.Address{IP: base + pc.IP, Exact: pc.Exact}
					var c Functions
					c.Add(at, CompileFunction(table, fn, base, at, number))
					regs.RIP = at.IP
					to, f := context.FromAMD64(regs), [2]unwind.Frame{}
					s := unwind.State{Regs: &to, Exact: pc.Exact, Trust: unwind.TrustContext}
					one, g := to, unwind.Frame{}
					from := unwind.State{Regs: &one, Exact: pc.Exact, Trust: unwind.TrustContext}
					if c.Step(&from, mem, &unbounded, &g) {
						single++
						expect.True(t, sameKnown(&one.AMD64, &want) && g.CFA == want.SP() && !from.Exact &&
							from.Trust == peTrust[res.Part], "%s pc %#x: %+v", v.ID, pc.IP, one.AMD64)
					}
					n := c.Walk(&s, mem, &unbounded, f[:])
					if n == 0 {
						expect.Equal(t, to.AMD64, regs, "%s pc %#x: registers without a step", v.ID, pc.IP)
						continue
					}
					byRule++
					expect.Equal(t, f[0], unwind.Frame{IP: at.IP, SP: regs.SP(), FP: regs.FP(),
						CFA: want.SP(), Module: number, Trust: unwind.TrustContext, Exact: pc.Exact})
					expect.True(t, n == 1 && stop == unwind.StopNone && sameKnown(&to.AMD64, &want) &&
						!s.Exact && s.Trust == peTrust[res.Part],
						"%s pc %#x %s %q: %v, %+v\nwant %+v", v.ID, pc.IP, p.Where, p.Ins, stop, to.AMD64,
						want)
				}
				return nil
			})
			expect.Figures(t, single <= byRule && byRule <= all && byRule*100 >= all*least,
				"%d of %d steps by rules, %d of them by Step too", byRule, all, single)
		})
	}
}

// TestPERefusals: what must be refused has a reason.
func TestPERefusals(t *testing.T) {
	n := 0
	var stacks pevec.Stacks
	eachPE(t, "malformed", func(v *pevec.Vector) error {
		if v.ARM64() {
			return nil
		}
		n++
		p := &v.Points[0]
		mem, err := stacks.Window(v, p)
		if err != nil {
			return err
		}
		regs, err := v.AMD64(p)
		if err != nil {
			return err
		}
		res, stop := StepPE(v.Image().AMD64(), unwind.Instruction(uint64(*p.PC)), &regs, mem)
		refused := stop == unwind.BadInfo || stop == unwind.Unsupported
		switch v.Must {
		case "error":
			expect.True(t, refused && res.Reason != peamd64.OK,
				"%s (%s): %v, %v", v.ID, v.Note, stop, res.Reason)
		case "error-or-v3":
			expect.Equal(t, stop, unwind.Unsupported, "%s (%s): %v", v.ID, v.Note, res.Reason)
		case "no-crash", "ok":
		default:
			t.Errorf("%s: must %q is not known to this test", v.ID, v.Must)
		}
		t.Logf("%s: %v, %v", v.ID, stop, res.Reason)
		return nil
	})
	expect.Figures(t, n != 0, "malformed: %d amd64 lines", n)
}

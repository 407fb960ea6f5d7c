package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// FunctionRule is the step of StepFunction from one address, made once. The zero FunctionRule makes no step.
type FunctionRule struct {
	rule      Rule
	preserved uint32 // registers that the function preserves
}

// CompileFunction makes the rule for the step that StepFunction makes from at, in an image at base. It
// returns the zero FunctionRule if the step needs more than a cache entry: see peRule.pack. Functions
// describe the frame with number as Module, 0 to 65534.
func CompileFunction(t *peamd64.Table, fn peamd64.RuntimeFunction, base uint64, at unwind.Address,
	number int) (r FunctionRule) {
	regs := symbols
	s := peStep{table: t, pc: uint32(at.IP - base), regs: &regs, symbolic: true}
	p, ok := s.rule(s.leave(fn, at.Exact))
	r.preserved, p.kept = p.kept, windowsKept    // pack assumes it, and Functions use preserved
	if ok && p.trust == unwind.TrustUnwindInfo { // the trust of all steps of Functions
		r.rule, _ = p.pack(number, at)
	}
	return r
}

// Functions caches rules of functions that are in no module, and makes runs of their steps. It is not safe
// for concurrent use.
type Functions struct {
	rules
	form form // peForm, with the registers that the functions preserve
}

// Add caches the rule r of an address. All added functions must preserve the same registers.
func (c *Functions) Add(at unwind.Address, r FunctionRule) {
	if r.rule.bits != 0 && c.kept(at.Lookup()).bits == 0 {
		c.form = peForm
		c.form.kept = r.preserved
		*c.place(at.Lookup()) = entry{at.Lookup(), r.rule}
	}
}

// Clear drops all rules.
func (c *Functions) Clear() { c.cache = [cacheSize]entry{} }

// Step is Walk for one step.
func (c *Functions) Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	at := s.Address()
	r := c.kept(at.Lookup())
	if r.bits == 0 || !stepHot(r, &c.form, &s.Regs.AMD64, at.Exact, mem, b, f) {
		return false
	}
	f.Trust = s.Trust
	s.Reached(false, unwind.TrustUnwindInfo)
	return true
}

// Walk makes steps by cached rules, describes the frames in out, and returns their number. s is then the next
// frame. Walk stops at a frame without a cached rule, and at one whose step StepFunction must check. It
// allocates nothing. The result is that of StepFunction, except for Module: see CompileFunction.
func (c *Functions) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) int {
	regs := &s.Regs.AMD64
	r := c.kept(s.Address().Lookup())
	if !r.fusible(regs, s.Exact) || b.High != 0 && regs.GPR[context.RSP] > b.High {
		return 0
	}
	n := c.walkFused(r, &c.form, s, mem, b, out)
	c.section.hot, c.section.out = memory.Run{}, nil
	return n
}

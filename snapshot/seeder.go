package snapshot

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// walk is what the seeders of both architectures keep between captures, so that
// nothing is made in the window.
type walk struct {
	specials *seed.Specials
	mem      memory.Window
	bounds   unwind.Bounds
	frames   [256]unwind.Frame
	outcome  seed.Outcome
}

// SetSpecials tells the walks to come of the process's stubs; nil is none.
func (w *walk) SetSpecials(s *seed.Specials) { w.specials = s }

func (w *walk) over(c *clr.Capture) {
	w.mem.Reset(c.Stack.Addr, c.Stack.Data)
	w.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
}

// SeederAMD64 is the Seeder of x86-64.
type SeederAMD64 struct {
	walk
	u *amd64.Unwinder
}

// NewSeederAMD64 returns a seeder that walks with u, which it may share with
// whatever else runs on the sampler's thread. s may be nil.
func NewSeederAMD64(u *amd64.Unwinder, s *seed.Specials) *SeederAMD64 {
	return &SeederAMD64{walk: walk{specials: s}, u: u}
}

// Seed implements Seeder.
func (s *SeederAMD64) Seed(c *clr.Capture) seed.Verdict {
	s.over(c)
	c.Seed = c.Regs
	s.specials.SeekAMD64(s.u, &c.Seed, &s.mem, &s.bounds, s.frames[:], &s.outcome)
	return s.outcome.Verdict
}

// SeederARM64 is the Seeder of ARM64.
type SeederARM64 struct {
	walk
	u *arm64.Unwinder
}

// NewSeederARM64 returns a seeder that walks with u, which it may share with
// whatever else runs on the sampler's thread. s may be nil.
func NewSeederARM64(u *arm64.Unwinder, s *seed.Specials) *SeederARM64 {
	return &SeederARM64{walk: walk{specials: s}, u: u}
}

// Seed implements Seeder.
func (s *SeederARM64) Seed(c *clr.Capture) seed.Verdict {
	s.over(c)
	c.SeedARM64 = c.ARM64
	s.specials.SeekARM64(s.u, &c.SeedARM64, &s.mem, &s.bounds, s.frames[:], &s.outcome)
	return s.outcome.Verdict
}

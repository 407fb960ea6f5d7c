package snapshot

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// WalkSeeder is the Seeder that walks. What it needs lies in it, so that nothing
// is made in the window.
type WalkSeeder struct {
	w        unwind.Walker
	specials *seed.Specials
	at       unwind.State
	mem      memory.Window
	bounds   unwind.Bounds
	frames   [256]unwind.Frame
}

// NewSeeder returns a seeder that walks with w, which it may share with
// whatever else runs on the sampler's thread. s may be nil.
func NewSeeder(w unwind.Walker, s *seed.Specials) *WalkSeeder {
	return &WalkSeeder{w: w, specials: s}
}

// SetSpecials tells the walks to come of the process's stubs; nil is none.
func (s *WalkSeeder) SetSpecials(to *seed.Specials) { s.specials = to }

// Seed implements Seeder.
func (s *WalkSeeder) Seed(c *clr.Capture) seed.Verdict {
	s.mem.Reset(c.Stack.Addr, c.Stack.Data)
	s.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
	c.Seed.Copy(&c.Regs)
	s.at = unwind.Interrupted(&c.Seed)
	o := s.specials.Find(s.w, &s.at, &s.mem, &s.bounds, s.frames[:])
	s.at.Regs = nil // the capture is the caller's
	c.Loading = o.Loading
	return o.Verdict
}

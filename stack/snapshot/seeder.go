package snapshot

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// WalkSeeder is a Seeder that uses a walker. It contains all storage that a walk needs, so
// that nothing is allocated in the window.
type WalkSeeder struct {
	w        unwind.Walker
	specials *managed.Specials
	at       unwind.State
	mem      memory.Window
	bounds   unwind.Bounds
	frames   [256]unwind.Frame
	witness  seed.Witness
}

// NewSeeder returns a seeder that walks with w. Other code on the sampler's thread may use w
// too. s may be nil.
func NewSeeder(w unwind.Walker, s *managed.Specials) *WalkSeeder {
	return &WalkSeeder{w: w, specials: s}
}

// SetSpecials sets the specials of the process for later walks; nil means none.
func (s *WalkSeeder) SetSpecials(to *managed.Specials) { s.specials = to }

// SetMethods sets the unwind data of managed code that later seeds must agree with; nil means none. If to is
// a seed.Learner, a seed in code that it does not know is refused until Learn was called.
func (s *WalkSeeder) SetMethods(to seed.Methods) {
	s.witness.Methods = to
	_, s.witness.Strict = to.(seed.Learner)
}

// SetCode sets the reader of managed code, where a call must precede a seed; nil means that nothing reads it.
// It is used while a thread is suspended: a read must take no lock that this thread can own.
func (s *WalkSeeder) SetCode(r memory.Reader) { s.witness.Code = r }

// Learn learns the managed code for which the seed of c was refused, so that the next try can have one. It
// does not change c. Call it after Seed, while nothing is suspended.
func (s *WalkSeeder) Learn(c *clr.Capture) {
	regs, loading := c.Seed, c.Loading
	for s.witness.Learn() {
		s.Seed(c)
	}
	c.Seed, c.Loading = regs, loading
}

// Seed implements Seeder.
func (s *WalkSeeder) Seed(c *clr.Capture) seed.Verdict {
	s.mem.Reset(c.Stack.Addr, c.Stack.Data)
	s.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
	c.Seed.Copy(&c.Regs)
	s.at = unwind.Interrupted(&c.Seed)
	s.witness.Top = c.Redirected
	o := seed.Find(s.specials, s.w, &s.at, &s.mem, &s.bounds, s.frames[:], &s.witness)
	s.at.Regs = nil // the caller owns the capture
	c.Loading = o.Loading
	return o.Verdict
}

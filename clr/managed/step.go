package managed

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// Tables steps over the managed code of one runtime. It caches, and is not safe
// for concurrent use.
type Tables struct {
	src    Source
	arch   context.Arch
	copies map[key]*function
	last   [1 << lastBits]lastCopy // by hash
	rules  amd64.Functions
	ids    []clr.FunctionID // by the Modules of their frames

	// Arguments of interface calls, kept here so that they are not allocated each time.
	asked   Code
	scratch [nearcall.Longest]byte
	thread  [maxThread]byte
	saved   uint64 // see ReturnSlot
	left    unwind.Frame

	// See LearnMissed.
	missed    uint64
	unlearned map[uint64]bool
}

// key is an address whose function was copied. Only the copy for an interrupted frame includes code.
type key struct {
	ip    uint64
	exact bool
}

// lastCopy is the copy used last of those whose addresses have the same hash. A lookup in the map takes
// longer than a step.
type lastCopy struct {
	key
	fn *function
}

const lastBits = 9

func (k key) hash() uint64 {
	const prime = 0x9e3779b97f4a7c15
	return k.ip * prime >> (64 - lastBits)
}

// maxCopies bounds the copies; when it is reached, all are dropped.
const maxCopies = 1 << 13

// New returns tables over a source, without copies.
func New(src Source) *Tables {
	return &Tables{src: src, arch: src.Arch(), copies: map[key]*function{}, unlearned: map[uint64]bool{}}
}

// Forget drops the copies: code may have been replaced.
func (t *Tables) Forget() {
	clear(t.copies)
	clear(t.unlearned)
	t.last = [1 << lastBits]lastCopy{}
	t.rules.Clear()
	t.ids = t.ids[:0]
}

// Renew copies again what was learned and has been used since the last Renew, and drops all else: code may
// have been replaced. It asks the source, so call it while nothing is suspended.
func (t *Tables) Renew() {
	var used []uint64
	for k, fn := range t.copies {
		if fn.learned && fn.used {
			used = append(used, k.ip)
		}
	}
	t.Forget()
	for _, ra := range used {
		t.learn(ra)
		if fn := t.copies[key{ra, false}]; fn != nil {
			fn.used = false
		}
	}
}

var noBounds unwind.Bounds

// Walk makes steps out of methods as Step does, as long as it knows the rules of their return addresses from
// earlier steps, and describes the frames in out. It returns their number. s is then the next frame. The
// Module of a frame is the index of its function in ids.
func (t *Tables) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) (n int, ids []clr.FunctionID) {
	if s.Regs.Arch != context.ArchAMD64 || t.arch != context.ArchAMD64 {
		return 0, nil
	}
	return t.rules.Walk(s, mem, b, out), t.ids
}

// Step replaces s, a frame of managed code or of a stub of the runtime, by its caller, and describes the left
// frame in f. If the result is not StopNone, s is unchanged; NoInfo means that the source does not cover the
// ip. A nil b means no bounds.
func (t *Tables) Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	if t.saved = 0; b == nil {
		b = &noBounds
	}
	switch {
	case s.Regs.Arch != t.arch:
		return unwind.NoInfo
	case t.arch == context.ArchARM64:
		return t.stepARM64(s, mem, b, f)
	case t.arch != context.ArchAMD64:
		return unwind.NoInfo
	}
	if t.rules.Step(s, mem, b, f) {
		f.Module, f.Kind = -1, unwind.KindManaged
		return unwind.StopNone
	}
	at, from := s.Address(), &s.Regs.AMD64
	*f = unwind.Frame{IP: at.IP, SP: from.SP(), FP: from.FP(), Module: -1,
		Kind: unwind.KindManaged, Trust: s.Trust, Exact: at.Exact}
	fn, stop := t.find(at)
	if stop != unwind.StopNone {
		return stop
	}
	t.rules.Add(at, fn.rule)
	to, trust := *from, unwind.TrustLeaf
	if fn.Kind == Method {
		trust, stop = fn.step(at, &to, mem)
	} else {
		f.Kind = unwind.KindStub
		stop = t.stub(fn.Kind, at, &to, mem)
	}
	if stop == unwind.StopNone {
		stop = progress(from, &to, mem, b)
	}
	if stop != unwind.StopNone {
		return stop
	}
	*from = to
	s.Reached(false, trust)
	f.CFA = from.SP()
	return unwind.StopNone
}

// progress ends a walk at a return address of 0, as the walkers do, and if the stack pointer would decrease.
func progress(from, to *context.AMD64, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	switch {
	case to.SP()-8 < from.SP():
		return unwind.NoProgress
	case to.RIP == 0:
		return b.Null(from.SP(), mem.Hot().End())
	}
	return unwind.StopNone
}

// step undoes a method's frame, in an epilog by its code.
func (fn *function) step(at unwind.Address, regs *context.AMD64,
	mem *memory.Window) (trust unwind.Trust, stop unwind.Stop) {
	res, stop := amd64.StepFunction(fn.Table, fn.Entry, uint32(at.IP-fn.Base), at.Exact, regs, mem)
	switch {
	case stop != unwind.StopNone:
		return unwind.TrustNone, stop
	case res.Machine:
		return unwind.TrustNone, unwind.Unsupported
	case res.Part == amd64.PEEpilog:
		return unwind.TrustEpilog, unwind.StopNone
	}
	return unwind.TrustUnwindInfo, unwind.StopNone
}

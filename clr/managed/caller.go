package managed

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// While a thread is suspended, Tables must not ask the source. So Tables learns methods before, and Caller
// steps over the learned ones.

// Learn copies the unwind data of the methods in a report of DoStackSnapshot. It asks the source, so call it
// while nothing is suspended.
func (t *Tables) Learn(report []clr.SnapshotFrame) {
	for i := range report {
		if f := &report[i]; !f.Marker() {
			t.learn(f.IP)
		}
	}
}

// LearnMissed copies the unwind data of the method that Caller did not know last. It returns false if the
// source has no method there; Caller returns Unsupported for it from then on. LearnMissed asks the source, so
// call it while nothing is suspended.
func (t *Tables) LearnMissed() bool {
	t.learn(t.missed)
	fn := t.copies[key{t.missed, false}]
	if fn == nil || !fn.learned {
		if len(t.unlearned) >= maxCopies {
			clear(t.unlearned) // what is dropped is asked for again
		}
		t.unlearned[t.missed] = true
		return false
	}
	return true
}

// learn copies the unwind data of the method at a return address.
func (t *Tables) learn(ra uint64) {
	fn, stop := t.find(unwind.ReturnAddress(ra))
	if stop != unwind.StopNone || fn.Kind != Method {
		return
	}
	if fn.used = true; fn.learned {
		return
	}
	fn.learned, fn.called = true, t.followsCall(ra)
	if t.arch == context.ArchARM64 {
		fn.least = fn.arm.info.LeastFrame(uint32(ra-fn.Base) - fn.EntryARM64.Begin)
	} else {
		fn.least = fn.Table.LeastFrame(fn.Entry, uint32(ra-fn.Base))
	}
}

// Caller is Step for a return address that was learned. It does not ask the source, and allocates nothing.
// NoInfo means that LearnMissed may learn the method, BadInfo that no call precedes the address, NoProgress
// that the frame is smaller than the method's. If the result is not StopNone, s is undefined.
func (t *Tables) Caller(s *unwind.State, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	at, sp := s.Address(), s.Regs.SP()
	fn := t.copies[key{at.IP, at.Exact}]
	switch {
	case at.Exact:
		return unwind.NoInfo
	case fn == nil, !fn.learned:
		if t.unlearned[at.IP] {
			return unwind.Unsupported
		}
		t.missed = at.IP
		return unwind.NoInfo
	case !fn.called:
		return unwind.BadInfo
	}
	fn.used = true
	stop := t.Step(s, mem, b, &t.left)
	if stop == unwind.StopNone && s.Regs.SP()-sp < fn.least {
		return unwind.NoProgress
	}
	return stop
}

package sched

import (
	"fmt"
	"slices"
)

// maxSuspends is MAXIMUM_SUSPEND_COUNT of winnt.h.
const maxSuspends = 127

// Suspends returns the suspend count.
func (a *Actor) Suspends() int { return a.suspends }

// Stopped reports whether a suspension is in force.
func (a *Actor) Stopped() bool { return a.stopped }

// SuspendThread adds one to t's suspend count and returns the count before. It
// is asynchronous: t may take steps until Stop returns or the kernel gets to
// it. To suspend oneself is to stop at once; the call returns after the resume.
func (a *Actor) SuspendThread(t *Actor) (prev int, err error) {
	a.point(operation{kind: KindSuspend, what: t.name, target: t})
	if err := t.suspendable(); err != nil {
		a.Observe(uint64(maxSuspends + 1))
		a.done("suspend ", t.name, ": ", err.Error())
		return -1, err
	}
	prev = t.suspends
	t.suspends++
	t.suspenders = append(t.suspenders, a.id)
	a.Observe(uint64(prev))
	a.done("suspend ", t.name, ": count ", count(t.suspends))
	if t == a {
		a.stopped = true
		a.point(operation{kind: KindRun, what: "resumed", target: t})
		a.done("runs again")
	}
	return prev, nil
}

func (a *Actor) suspendable() error {
	if a.ended {
		return ErrEnded
	}
	if a.suspends >= maxSuspends {
		return ErrSuspendLimit
	}
	return nil
}

// Stop waits until t's suspension is in force, as GetThreadContext does: after
// it t takes no step until it is resumed. ErrEnded if t ended in its grace,
// ErrNotSuspended if its suspend count is 0.
func (a *Actor) Stop(t *Actor) error {
	a.point(operation{kind: KindStop, what: t.name, target: t})
	var err error
	switch {
	case t.ended:
		err = ErrEnded
	case t.suspends == 0:
		err = ErrNotSuspended
	default:
		t.stopped, a.w.dirty = true, true
	}
	if err != nil {
		a.Observe(1)
		a.done("stop ", t.name, ": ", err.Error())
		return err
	}
	a.Observe(0)
	a.done("wait until ", t.name, " is stopped")
	return nil
}

// ResumeThread takes one from t's suspend count and returns the count before;
// at 0 there is nothing to take and t runs.
func (a *Actor) ResumeThread(t *Actor) (prev int, err error) {
	a.point(operation{kind: KindResume, what: t.name, target: t})
	if t.ended {
		a.Observe(uint64(maxSuspends + 1))
		a.done("resume ", t.name, ": ", ErrEnded.Error())
		return -1, ErrEnded
	}
	prev = t.suspends
	a.Observe(uint64(prev))
	if prev > 0 {
		t.forgive(a.id)
		t.suspends--
		t.stopped = t.stopped && t.suspends > 0
	}
	a.done("resume ", t.name, ": count ", count(t.suspends))
	return prev, nil
}

// forgive takes one suspension of by off the list, or the lowest actor's if by
// resumes what others suspended.
func (a *Actor) forgive(by int) {
	i := slices.Index(a.suspenders, by)
	if i < 0 {
		i = slices.Index(a.suspenders, slices.Min(a.suspenders))
	}
	a.suspenders = slices.Delete(a.suspenders, i, i+1)
}

// count avoids strconv's allocation when no trace is kept: small numbers
// are constants.
func count(n int) string {
	if n < 10 {
		return "0123456789"[n : n+1]
	}
	return fmt.Sprint(n)
}

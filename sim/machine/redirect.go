package machine

import "github.com/seedwalk/seedwalk/sim/image"

// Redirect makes f run next, like a write to the context of a stopped thread: only the pc
// changes. The function that ran is interrupted. No call entered f, so f has no return address
// until its prolog and Answer have run.
func (t *Thread) Redirect(im *image.Image, f *image.Func) {
	t.callers = append(t.callers, activation{image: t.image, fn: t.fn, state: t.state, exact: true})
	t.begin(im, f)
}

// reserve pushes v as the return address of a function to which a thread was redirected. The
// function gets its true return address later. reserve returns false, and changes nothing, if
// the stack has no room.
func (t *Thread) reserve(v uint64) bool {
	sp := &t.state.R[t.arch.SP()]
	if !t.put(*sp-8, v) {
		return false
	}
	*sp -= 8
	return true
}

// Answer stores the return address of a function to which a thread was redirected. The place is
// the one in the function's unwind data. From then on, the stack can be walked. The function will
// return to the interrupted one and restore all of its registers. Answer returns false if the
// thread was not redirected, or the stack does not contain the place.
func (t *Thread) Answer() bool {
	n := len(t.callers) - 1
	if n < 0 || !t.callers[n].redirected() || t.at < 0 || t.at >= len(t.fn.Ops) {
		return false
	}
	row, back := &t.fn.Rows(t.arch)[t.at], t.callers[n].state.PC
	if t.arch == image.ARM64 && row.RAReg {
		t.state.R[30] = back
		return true
	}
	ra := int64(-8)
	if t.arch == image.ARM64 {
		ra = row.RA
	}
	return t.put(t.state.R[row.Base]+uint64(row.Off+ra), back)
}

// redirected reports whether Redirect interrupted a. No frame of the kernel or the processor
// resumes such an activation.
func (a *activation) redirected() bool { return a.exact && a.signal == 0 }

package machine

import "github.com/seedwalk/seedwalk/sim/image"

// redZone is the number of bytes below RSP that System V functions may use.
const redZone = 128

// Interrupt stops the thread before the op at PC and makes f run.
//
// ELF: the kernel writes a signal frame to the stack, or to the signal stack if there is one.
// f is the handler, and returns to the trampoline of im (image.SignalReturn). PE x64: the
// processor writes a machine frame to the stack. f is a function of that entry, and ends by
// resuming the thread.
//
// Interrupt returns false in three cases: im has no trampoline, f has another entry, or the
// stack has no room. It then has changed nothing except memory below SP.
func (t *Thread) Interrupt(im *image.Image, f *image.Func) bool {
	if t.fn == nil {
		return false
	}
	switch f.Entry {
	case image.Called:
		return t.signal(im, f)
	case image.MachineFrame, image.MachineFrameCode:
		return t.trap(im, f)
	}
	return false
}

// trap pushes SS RSP EFLAGS CS RIP and the error code as a processor in 64-bit
// mode does: on a stack aligned to 16 bytes. Source: Intel SDM volume 3, 6.14.
func (t *Thread) trap(im *image.Image, f *image.Func) bool {
	if t.arch != image.AMD64 {
		return false
	}
	sp := t.state.R[4]
	at := sp&^15 - 40
	words := [...]uint64{t.state.PC, 0x33, 0x246, sp, 0x2b}
	for i, w := range words {
		if !t.put(at+8*uint64(i), w) {
			return false
		}
	}
	entry := at
	if f.Entry == image.MachineFrameCode {
		if entry = at - 8; !t.put(entry, 0) {
			return false
		}
	}
	t.callers = append(t.callers,
		activation{image: t.image, fn: t.fn, state: t.state, exact: true, signal: at})
	t.state.R[4] = entry
	t.begin(im, f)
	return true
}

// signal writes struct rt_sigframe and enters the handler.
func (t *Thread) signal(im *image.Image, f *image.Func) bool {
	tramp := trampoline(im)
	if tramp == nil {
		return false
	}
	l := image.SignalLayout(t.arch)
	at, record := t.signalPlace(&l)
	if !t.signalFrame(at, &l) {
		return false
	}
	back := activation{image: im, fn: tramp, state: t.state}
	back.state.PC = im.Base + uint64(tramp.RVA+image.SignalEntry(t.arch))
	back.state.R[t.arch.SP()] = at
	if t.arch == image.ARM64 {
		// The frame record links the handler's frame to the interrupted one.
		if !t.put(record, t.state.R[29]) || !t.put(record+8, t.state.R[30]) {
			return false
		}
		back.state.R[29], back.state.R[30] = record, back.state.PC
	}
	interrupted := activation{image: t.image, fn: t.fn, state: t.state, exact: true, signal: at}
	old := t.state
	t.state = back.state
	if !t.enter(im, f, back.state.PC) {
		t.state = old
		return false
	}
	t.callers = append(t.callers, interrupted, back)
	return true
}

// signalPlace returns the address of the signal frame, which is SP at the trampoline, and the
// address of the frame record on ARM64.
func (t *Thread) signalPlace(l *image.SignalFrameLayout) (at, record uint64) {
	sp := t.state.R[t.arch.SP()]
	switch n := uint64(len(t.alt.mem)); {
	case n != 0 && sp-t.alt.low >= n:
		sp = t.alt.low + n
	case t.arch == image.AMD64:
		sp -= redZone
	}
	if t.arch == image.ARM64 {
		record = (sp - 16) &^ 15
		return record - uint64(l.Size+15)&^15, record
	}
	return (sp - uint64(l.Size)) &^ 15, 0
}

// signalFrame stores the registers.
func (t *Thread) signalFrame(at uint64, l *image.SignalFrameLayout) bool {
	ok := t.put(at, 0) && t.put(at+uint64(l.Size)-8, 0)
	for r, off := range l.Regs {
		if off != 0 {
			ok = ok && t.put(at+uint64(off), t.state.R[r])
		}
	}
	if t.arch == image.ARM64 {
		const magic, size = 0x46508001, 528 // struct fpsimd_context
		ok = ok && t.put(at+image.SignalFPSIMD, magic|size<<32)
		ok = ok && t.put(at+image.SignalFPSIMD+size, 0) // the end of the records
	}
	for r, off := range l.V {
		if off != 0 {
			ok = ok && t.put(at+uint64(off), t.state.V[r][0]) && t.put(at+uint64(off)+8, t.state.V[r][1])
		}
	}
	return ok && t.put(at+uint64(l.PC), t.state.PC)
}

// trampoline finds an image's signal trampoline.
func trampoline(im *image.Image) *image.Func {
	for i := range im.Funcs {
		if im.Funcs[i].Entry == image.SignalFrame {
			return &im.Funcs[i]
		}
	}
	return nil
}

// resume ends a trap or signal. The general registers come from the signal frame in memory; a
// machine frame has only RIP and RSP. The other registers get their values before the interrupt.
func (t *Thread) resume() Event {
	n := len(t.callers) - 1
	if n < 0 || !t.callers[n].exact {
		return Faulted
	}
	c := &t.callers[n]
	to := c.state
	ok := true
	word := func(at uint64, v *uint64) {
		w, have := t.Word(at)
		*v, ok = w, ok && have
	}
	if t.fn.Entry == image.SignalFrame {
		l := image.SignalLayout(t.arch)
		at := t.state.R[t.arch.SP()] // a handler that lost SP loses the frame
		for r, off := range l.Regs {
			if off != 0 {
				word(at+uint64(off), &to.R[r])
			}
		}
		word(at+uint64(l.PC), &to.PC)
	} else {
		word(c.signal, &to.PC)
		word(c.signal+24, &to.R[4])
	}
	if !ok {
		return Faulted
	}
	t.state = to
	return t.land()
}

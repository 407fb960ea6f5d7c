package merge

import "github.com/seedwalk/seedwalk/unwind"

// The CLR may report two frames in sequence although there are others between them on the stack. These are
// stubs of calls from unmanaged code. While an exception handler runs, they are also the unmanaged frames of
// the exception's dispatch, and the frames that the exception has already unwound. The runtime's tables find
// them.

// fill writes the frames between in.Frames[i], which is already written, and the frame or marker below it.
// here means that the walk is at in.Frames[i]. fill reports whether the walk is now at the second. If it does
// not arrive there, or there is nothing between, nothing is written.
func (m *Merger) fill(i int, here bool) bool {
	written, hidden := m.res.N, m.res.Hidden
	f, to := &m.in.Frames[i], &m.in.Frames[i+1]
	// Most pairs are a method and its caller with nothing between. They are recognized by their distance and
	// need no step; this keeps a merge of a deep managed stack cheap.
	known := m.sizes.of(f.IP)
	if known.ip == f.IP && known.size == to.SP-f.SP {
		return false
	}
	if !here { // the walk is elsewhere: the step begins at the registers that the CLR reported
		f.Load(&m.regs)
		m.at.Exact = false
	}
	m.at.Trust = unwind.TrustCLR // the CLR has confirmed the frame
	if m.reach(i + 1) {
		if m.res.N == written {
			*known = frameSize{f.IP, to.SP - f.SP}
		}
		return true
	}
	// The steps did not arrive at the next frame that the CLR reported. So nothing proves that the frames
	// found belong to this stack, and they are not shown.
	m.res.N, m.res.Hidden = written, hidden
	return false
}

// sizes remembers the distance from a frame to its adjacent caller, by the frame's IP, so that most frames
// need no step. A method's frame has the same size each time at the same IP, unless it allocates on the
// stack: then the distance differs and a step is made. If other code is later at the same IP, the worst case
// is that a frame the CLR hides stays hidden.
type (
	sizes     [1024]frameSize
	frameSize struct{ ip, size uint64 }
)

func (s *sizes) of(ip uint64) *frameSize { return &s[(ip^ip>>10)%uint64(len(s))] }

// reach walks from the current managed frame to in.Frames[i]. Each step goes up the stack and is certain, so
// the room for frames is a sufficient limit.
func (m *Merger) reach(i int) bool {
	to := &m.in.Frames[i]
	for m.stepByTables() {
		// A marker is the start of an unmanaged block. The walk must arrive there exactly, before the block
		// is walked: the merge continues with the marker's own registers.
		if to.Marker() && m.ip() == to.IP && m.sp() == to.SP {
			return true
		}
		if !m.walkBlock() {
			return false
		}
		fid, hr := m.functions.FunctionFromIP(m.ip())
		known := !hr.Failed() && fid != 0
		switch {
		case !to.Marker() && m.same(i, fid, known):
			return true
		case m.sp() > to.SP && (to.Marker() || m.sp() > to.FP):
			// The walk has passed in.Frames[i]. A higher SP alone does not prove that: the method may have
			// allocated on the stack (see grown).
			return false
		}
		m.putHidden(fid, known) // walkBlock has left room
	}
	return false
}

// walkBlock walks the unmanaged frames, if any, down to managed code. It reports whether it arrived there
// without a guess. It fails at the first byte of a native function: that is the hijack stub, whose true
// return address is unknown.
func (m *Merger) walkBlock() bool {
	if m.entries.has(m.w.Table(), m.ip()) {
		return false
	}
	r := m.w.Walk(&m.at, &m.mem, &m.bounds, m.buf[:])
	n, stop := r.N, r.Stop
	if m.fresh(n, stop) { // the last frame is code newer than the table: managed
		n, stop = n-1, unwind.Managed
	}
	if stop != unwind.Managed || m.res.N+n+1 >= len(m.out) {
		return false
	}
	m.native(n)
	return !m.at.Trust.Doubtful()
}

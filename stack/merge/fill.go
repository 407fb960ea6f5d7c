package merge

import "github.com/seedwalk/seedwalk/unwind"

// Between two frames that the CLR reports, one behind the other, others may
// stand on the stack of which it says nothing: stubs of calls from unmanaged
// code, and, while a handler runs, all of an exception's dispatch, unmanaged
// frames among it, with the frames that are already unwound below. The runtime's
// tables find them.

// fill writes what stands between in.Frames[i], which is written, and the frame
// or marker below it. here says that the walk stands at the first. It reports
// whether the walk now stands at the other; if it does not get there, or need
// not, nothing is written.
func (m *Merger) fill(i int, here bool) bool {
	written, hidden := m.res.N, m.res.Hidden
	f, to := &m.in.Frames[i], &m.in.Frames[i+1]
	// Most pairs are frames of one call and nothing between: known by their distance,
	// they cost no step, which is what keeps a merge of a deep managed stack cheap.
	known := m.sizes.of(f.IP)
	if known.ip == f.IP && known.size == to.SP-f.SP {
		return false
	}
	if !here { // the walk stands elsewhere: the step begins at what the CLR reported
		f.Load(&m.regs)
		m.at.Exact = false
	}
	m.at.Trust = unwind.TrustCLR // it has confirmed the frame
	if m.reach(i + 1) {
		if m.res.N == written {
			*known = frameSize{f.IP, to.SP - f.SP}
		}
		return true
	}
	// What was found does not lead to the next frame that the CLR knows, so that nothing
	// says it is of this stack: it is not shown.
	m.res.N, m.res.Hidden = written, hidden
	return false
}

// sizes remembers how far apart two frames are between which nothing stands, by
// the ip of the upper one, so that most frames need no step: a method's frame at
// an ip is always as large, but for what it has allocated on the stack, which
// only makes it look unknown. Code that takes the place of other code could only
// hide what the CLR hides.
type (
	sizes     [1024]frameSize
	frameSize struct{ ip, size uint64 }
)

func (s *sizes) of(ip uint64) *frameSize { return &s[(ip^ip>>10)%uint64(len(s))] }

// reach walks up to in.Frames[i] from the managed frame the walk stands at. Each
// step goes up the stack and leaves no doubt, so that the frames' room is all the
// bound there is.
func (m *Merger) reach(i int) bool {
	to := &m.in.Frames[i]
	for m.stepByTables() {
		// A marker is where an unmanaged block begins. It must be met before the block is
		// walked, and exactly: the merge goes on from the marker's own registers.
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
			// Past it without having met it. Its SP alone does not say so: it may differ from
			// the reported one by what the method has allocated (see grown).
			return false
		}
		m.putHidden(fid, known) // walkBlock has left room
	}
	return false
}

// walkBlock walks the unmanaged frames, if there are any, down to managed code.
// The stub that replaces a return address does not count.
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

package merge

import "github.com/seedwalk/seedwalk/unwind"

// Writing the result: frames, and gaps where some are missing.

// native appends the n frames of a walk.
func (m *Merger) native(n int) {
	for i := range m.buf[:n] {
		f := &m.buf[i]
		if f.Trust.Doubtful() && m.guess < 0 {
			m.guess = m.res.N
		}
		if !m.room() {
			m.gap(GapLimit)
			return
		}
		m.add().unmanaged(f)
	}
}

// room keeps one frame free for a gap.
func (m *Merger) room() bool { return m.res.N < len(m.out)-1 }

// add makes room for a frame. The caller sets all fields, one by one: a copy of a whole struct right after
// writes to it waits until these are in the cache.
func (m *Merger) add() *Frame {
	f := &m.out[m.res.N]
	m.res.N++
	return f
}

// gap marks missing frames. There are never two gaps in a row.
func (m *Merger) gap(g Gap) {
	if m.res.Gap == GapNone {
		m.res.Gap = g
	}
	if n := m.res.N; n < len(m.out) && (n == 0 || m.out[n-1].Kind != unwind.KindGap) {
		*m.add() = Frame{Kind: unwind.KindGap, Gap: g, Module: -1, SP: m.sp()}
	}
}

// finish counts the frames that depend on a guess which no frame of the CLR confirmed, and those that the
// suspension itself added.
func (m *Merger) finish() (r Result) {
	r = m.res
	if m.guess >= 0 {
		r.Doubtful = frames(m.out[m.guess:r.N])
	}
	r.Probe = m.probe(m.out[:r.N], m.in.Wake)
	return r
}

func frames(out []Frame) (n int) {
	for i := range out {
		if out[i].Kind != unwind.KindGap {
			n++
		}
	}
	return n
}

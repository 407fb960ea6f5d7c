package bench

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// replay is the upper limit of a walker's speed. The loop knows the rule of each frame in
// advance and looks nothing up. It only reads the return address and the frame pointer inside
// the stack's bounds, and describes the frame.

// row is the rule of a frame.
type row struct {
	size uint64 // the caller's SP minus this frame's SP
	bp   uint64 // bytes from the slot of the caller's RBP up to the caller's SP; 0 = RBP is not saved
}

// rowsOf learns the rules of a stack from our own steps.
func (s *side) rowsOf(i int) (rows []row) {
	w := &s.file.Stacks[i]
	at, mem := s.begin(w), s.mems[i]
	for len(rows) < w.Limit {
		before := s.regs.AMD64
		var f unwind.Frame
		if s.us[w.Set].Step(at, mem, nil, &f) != unwind.StopNone {
			return rows
		}
		r := row{size: s.regs.SP() - before.GPR[4]}
		if now := s.regs.FP(); now != before.GPR[5] {
			for k := uint64(8); k <= r.size+128 && r.bp == 0; k += 8 {
				if v, ok := mem.Word(s.regs.SP() - k); ok && v == now {
					r.bp = k
				}
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// replay walks by rows and returns how many frames it has described.
func replay(ip, sp, bp uint64, rows []row, hot memory.Run, out []unwind.Frame) (n int) {
	data, low := hot.Data, hot.Addr
	for i := range rows {
		f := &out[n]
		cfa := sp + rows[i].size
		f.IP, f.SP, f.FP, f.CFA = ip, sp, bp, cfa
		f.Module, f.Kind, f.Trust, f.Exact = 0, unwind.KindNative, unwind.TrustCFI, false
		n++
		at := int(cfa - 8 - low)
		if at < 0 || len(data)-at < 8 {
			return n
		}
		ip = binary.LittleEndian.Uint64(data[at:])
		if k := rows[i].bp; k != 0 {
			if at = int(cfa - k - low); at < 0 || len(data)-at < 8 {
				return n
			}
			bp = binary.LittleEndian.Uint64(data[at:])
		}
		sp = cfa
	}
	return n
}

// replays are the rows of every stack of a file.
func (s *side) replays() (all [][]row) {
	for i := range s.file.Stacks {
		all = append(all, s.rowsOf(i))
	}
	return all
}

func (s *side) replay(i int, rows []row) int {
	w := &s.file.Stacks[i]
	return replay(w.Regs.RIP, w.Regs.GPR[4], w.Regs.GPR[5], rows, s.mems[i].Hot(), s.out[:])
}

// replayed holds the loop against our walk.
func replayed(t *testing.T, f *capture.File) {
	t.Helper()
	s := newSide(f)
	for i, rows := range s.replays() {
		n := s.replay(i, rows)
		got := append([]unwind.Frame(nil), s.out[:n]...)
		want := s.walk(i)
		expect.True(t, n >= want-1, "the replay has %d frames of %d", n, want)
		for k := range got {
			must.True(t, got[k].IP == s.out[k].IP && got[k].SP == s.out[k].SP,
				"stack %d frame %d: the replay has %#x at %#x, our walk %#x at %#x", i, k, got[k].IP,
				got[k].SP, s.out[k].IP, s.out[k].SP)
		}
	}
}

// besideReplay is our walk beside the limit.
func besideReplay(b *testing.B, name string, f *capture.File) {
	s := newSide(f)
	rows := s.replays()
	total := 0
	theirs := func(n int) float64 {
		frames, begin := 0, time.Now()
		for range n {
			for i := range rows {
				frames += s.replay(i, rows[i])
			}
		}
		total = frames
		return float64(time.Since(begin)) / float64(frames)
	}
	r := against(name, "replay", frames(f), s.ours(peer.Warm), theirs)
	s.again(b, peer.Warm)
	r.report(b)
	must.True(b, total != 0, "nothing was replayed")
}

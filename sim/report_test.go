package sim_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Where a method has an inlined P/Invoke the CLR reports the registers of its
// prolog, not those of the call: a frame is known by its method and by one of
// its SP and its frame pointer. Source: an InlinedCallFrame's registers; seen on
// .NET 9 and 10.
func TestReportDiffers(t *testing.T) {
	tl := newTools()
	out := make([]merge.Frame, 512)
	for name, change := range map[string]func(f, below *clr.SnapshotFrame){
		"another ip":       func(f, _ *clr.SnapshotFrame) { f.IP += 4 },
		"no frame pointer": func(f, _ *clr.SnapshotFrame) { f.FP = 0 },
		"another sp": func(f, below *clr.SnapshotFrame) {
			// Above what was allocated since, in a frame that has a frame pointer.
			if f.FP >= f.SP+8 && below.FP != f.FP {
				f.SP += 8
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(r *recorded) bool { return len(r.capture.Frames) > 0 && r.top() >= 0 }, func(t *testing.T, r *recorded) {
				_, m := tl.use(r)
				want := m.Merge(&r.capture, out)
				if want.Hidden != 0 || !want.Complete() {
					return
				}
				c := r.capture
				c.Frames = append([]clr.SnapshotFrame(nil), c.Frames...)
				for i := range c.Frames[:len(c.Frames)-1] {
					if f := &c.Frames[i]; !f.Marker() && (i == 0 || c.Frames[i-1].Marker()) {
						change(f, &c.Frames[i+1])
					}
				}
				if got := m.Merge(&c, out); got != want {
					t.Fatalf("%+v, not %+v", got, want)
				}
			})
		})
	}
}

// A report that lacks a frame whose caller is another frame of the same method: a
// frame is known by its stack too, or one is lost where nothing says so.
func TestRecursionUnreported(t *testing.T) {
	tl := newTools()
	out := make([]merge.Frame, 512)
	both(t, func(r *recorded) bool {
		f := r.capture.Frames
		if len(f) < 3 || r.top() < 0 || r.capture.Result != clr.S_OK || f[0].Marker() || f[0].SP != r.truth[r.top()].State.R[r.w.Arch.SP()] {
			return false
		}
		return !f[1].Marker() && f[1].FP != f[0].FP
	}, func(t *testing.T, r *recorded) {
		_, m := tl.use(r)
		c := r.capture
		c.Frames = append([]clr.SnapshotFrame(nil), c.Frames[1:]...)
		// The caller of the frame on top becomes another activation of its method.
		first, caller := r.capture.Frames[0], &c.Frames[0]
		was := caller.Function
		caller.Function = first.Function
		res := m.Merge(&c, out)
		for i := range out[:res.N] {
			f := &out[i]
			if f.Function != first.Function || f.SP != caller.SP {
				continue
			}
			return // the caller is there
		}
		if res.Complete() {
			t.Fatalf("the frame of %#x at sp %#x is lost, and no gap says so: %+v", was, caller.SP, res)
		}
	})
}

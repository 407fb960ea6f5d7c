package merge

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
)

// Unmanaged frames found by a guess are counted, and so are all frames reached from them.
func TestGuessedUnmanagedFramesAreCounted(t *testing.T) {
	for _, c := range []struct {
		name  string
		trust []unwind.Trust
		want  int
	}{
		{"none", []unwind.Trust{unwind.TrustContext, unwind.TrustCFI}, 0},
		{"the first", []unwind.Trust{unwind.TrustFramePointer, unwind.TrustFramePointer}, 2},
		{"in the midst", []unwind.Trust{unwind.TrustContext, unwind.TrustFramePointer, unwind.TrustFramePointer}, 2},
		{"the last", []unwind.Trust{unwind.TrustContext, unwind.TrustCFI, unwind.TrustFramePointer}, 1},
	} {
		m := merger(fs.BuildFor(context.ArchAMD64, fs.Root, fs.Native))
		m.in, m.out, m.guess = &clr.Capture{}, make([]Frame, 8), -1
		for i, tr := range c.trust {
			m.buf[i] = unwind.Frame{IP: uint64(i + 1), SP: uint64(i + 1), Trust: tr}
		}
		m.native(len(c.trust))
		if r := m.finish(); r.N != len(c.trust) || r.Doubtful != c.want {
			t.Errorf("%s: %d of %d frames are doubtful, want %d", c.name, r.Doubtful, r.N, c.want)
		}
	}
}

// A hidden frame that was interrupted in its prolog, or keeps no frame pointer, has its caller's. So the
// guess skips the caller, which the CLR reported. The guessed frames are removed: otherwise they would
// appear twice.
func TestGuessPastTheCLRIsTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range []struct {
			name  string
			kinds []fs.Kind
			below int // the frame that has its caller's frame pointer
			gap   Gap
		}{
			{"to the root", []fs.Kind{fs.Root, fs.Framed, fs.Managed, fs.Hidden}, 0, GapLostManaged},
			{"to another method", []fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Managed, fs.Hidden}, 0, GapMismatch},
			{"to another hidden frame", []fs.Kind{fs.Root, fs.Framed, fs.Hidden, fs.Managed, fs.Hidden}, 0, GapMismatch},
			{"to code without unwind data", []fs.Kind{fs.Root, fs.Managed, fs.NoCFI, fs.Framed, fs.Managed, fs.Hidden}, 0, GapNoInfo},
			{"through a second hidden frame", []fs.Kind{fs.Root, fs.Framed, fs.Managed, fs.Hidden, fs.Hidden}, 1, GapLostManaged},
		} {
			w := fs.BuildFor(arch, c.kinds...)
			if fp := w.Truth[c.below+1].FP; c.below == 0 {
				w.Capture.Regs.SetFP(fp)
			} else {
				store(w, w.Truth[c.below-1].FP, fp)
			}
			r, got := run(w)
			if r.Gap != c.gap || len(got) < 3 || got[1].Kind != unwind.KindGap || got[2].IP != w.Truth[c.below+1].IP {
				t.Errorf("%s: %+v: %+v", c.name, r, got)
				continue
			}
			if got[1].SP <= got[0].SP || c.below == 0 && got[1].SP < got[2].SP {
				t.Errorf("%s: the gap stands at sp %#x", c.name, got[1].SP)
			}
			inOrder(t, w, got)
			hidden := 0
			for i := range got {
				if got[i].Kind == unwind.KindManaged && got[i].Trust != unwind.TrustCLR {
					hidden++
				}
			}
			if r.Hidden != hidden || r.N != len(got) {
				t.Errorf("%s: %d hidden frames are counted, %d written", c.name, r.Hidden, hidden)
			}
		}
	})
}

package merge

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	fs "github.com/seedwalk/seedwalk/internal/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
)

// Unmanaged frames that rest on a guess are counted, and so is all that was
// reached from them.
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

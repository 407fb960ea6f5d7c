package sampler

import (
	"testing"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// Frames are doubtful if their return addresses were read after the sample.
func TestDoubtLater(t *testing.T) {
	frames := []merge.Frame{{SP: 0x100, Trust: unwind.TrustContext}, {SP: 0x200, Trust: unwind.TrustCLR},
		{SP: 0x201, Trust: unwind.TrustCFI}, {SP: 0x300, Trust: unwind.TrustFramePointer},
		{SP: 0x400, Kind: unwind.KindGap}}
	doubtLater(frames, 0x200)
	for i, want := range []unwind.Trust{unwind.TrustContext, unwind.TrustCLR, unwind.TrustLater,
		unwind.TrustFramePointer, unwind.TrustNone} {
		expect.Equal(t, frames[i].Trust, want, "frame %d", i)
	}
}

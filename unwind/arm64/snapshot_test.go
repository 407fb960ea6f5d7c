package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/testkit/walktest"
)

// recorded is one snapshot ready to walk.
type recorded struct {
	s   *snap.Snapshot
	reg Registers
	mem *memory.Window
	u   *Unwinder
}

// eachSnapshot walks over every recorded AArch64 snapshot.
func eachSnapshot(tb testing.TB, fn func(r *recorded)) {
	tb.Helper()
	walktest.Snapshots(tb, context.ArchARM64, newCached, func(r *walktest.Recorded) {
		fn(&recorded{s: r.Snapshot, reg: r.Regs.ARM64, mem: r.Mem, u: r.Walker.(*Unwinder)})
	})
}

func newCached() walktest.Walker { return New() }

func TestWalkAgreesWithStep(t *testing.T) { walktest.Agree(t, context.ArchARM64, newCached) }

package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// Gap is the reason why frames are missing at a place in a merged stack.
type Gap uint8

const (
	GapNone         Gap = iota
	GapNoAnswer         // the thread did not answer in time: its unmanaged top is unknown
	GapGone             // the thread ended
	GapForeignStack     // the thread ran on a stack that is not its own
	GapTruncated        // the stack is larger than the copy
	GapNoInfo           // no unwind data covers an ip
	GapBadInfo          // unwind data is malformed or contradicts the stack
	GapUnsupported      // unwind data of a kind that is not supported
	GapUnreadable       // a stack word was not copied
	GapNoProgress       // the walk did not go up the stack
	GapLimit            // more frames than a stack may have
	GapLostManaged      // the unmanaged walk ended before a frame the CLR reported
	GapMismatch         // the walk passed a frame the CLR reported
	GapCLRRefused       // DoStackSnapshot refused, though there are managed frames
	GapCLRCut           // DoStackSnapshot's report ends early
	GapStubOnTop        // the thread was interrupted where no return address is on the stack
	GapUnproven         // managed code of a runtime whose tables cannot be read, or not yet
	GapUnloaded         // the runtime has freed the code before the walk
)

var gapNames = [...]string{"none", "no-answer", "thread-gone", "foreign-stack", "stack-truncated",
	"no-unwind-info", "bad-unwind-info", "unsupported-unwind-info", "unreadable-stack",
	"no-progress", "too-many-frames",
	"lost-managed-frame", "managed-frame-mismatch", "clr-refused", "clr-report-cut",
	"stub-on-top", "runtime-not-readable", "code-unloaded"}

const GapCount = len(gapNames)

func (g Gap) String() string {
	if int(g) < len(gapNames) {
		return gapNames[g]
	}
	return "gap?"
}

func gapOfCapture(s clr.CaptureStatus) Gap {
	switch s {
	case clr.Captured:
		return GapNone
	case clr.CaptureGone:
		return GapGone
	case clr.CaptureForeign:
		return GapForeignStack
	}
	return GapNoAnswer
}

// gapOfVerdict returns why a stack was not walked at all. A stub of the CLR is no gap: the merge leaves it.
func gapOfVerdict(o *seed.Outcome) Gap {
	switch {
	case o.Verdict == seed.ForeignStack:
		return GapForeignStack
	case o.Verdict == seed.StubOnTop && o.Stop != unwind.Managed:
		return GapStubOnTop
	}
	return GapNone
}

// GapOfStop maps the reason a walk ended. If the copy of the stack was truncated, a walk that ran off its end
// has GapTruncated.
func GapOfStop(s unwind.Stop, truncated bool) Gap {
	switch s {
	case unwind.Unreadable, unwind.OutOfStack:
		if truncated {
			return GapTruncated
		}
		return GapUnreadable
	case unwind.NoProgress:
		return GapNoProgress
	case unwind.BadInfo:
		return GapBadInfo
	case unwind.Unsupported:
		return GapUnsupported
	case unwind.Limit, unwind.BufferFull:
		return GapLimit
	}
	return GapNoInfo
}

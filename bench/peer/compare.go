package peer

import (
	"fmt"
	"github.com/seedwalk/seedwalk/stack/capture"
	"slices"
)

// Class is how the peer's frames compare with ours.
type Class string

const (
	Equal        Class = "equal"                             // every frame of the block, and the one below it
	StopsNoInfo  Class = "stops: no unwind data it can find" // equal so far
	StopsInfo    Class = "stops: it has unwind data"         // equal so far
	GuessDiffers Class = "differs after its guess"           // it had no unwind data, used RBP or code
	OursDoubtful Class = "differs where ours is a guess"     // we marked the frame as doubtful
	Extra        Class = "continues beyond our end"          // equal so far
	HijackStub   Class = "differs below the CLR's return-hijack stub"
	Restore      Class = "differs below ClrRestoreNonvolatileContextWorker"
	Differs      Class = "DIFFERS, unwind data on both sides"
)

// Compare classifies a walk; at is the first frame that differs or is missing.
func Compare(want Want, got []Frame) (c Class, at int) {
	for i, w := range want.Frames {
		if i >= len(got) {
			return stopped(got, i), i
		}
		if got[i].IP == w.IP && (got[i].SP == w.SP || w.SP == 0) {
			continue
		}
		switch {
		case w.Trust.Doubtful():
			return OursDoubtful, i
		case guessed(got[:i]):
			return GuessDiffers, i
		}
		return Differs, i
	}
	if len(got) > len(want.Frames) {
		return Extra, len(want.Frames)
	}
	return Equal, 0
}

// guessed reports whether the peer stepped out of a frame without unwind data. Then all registers of the
// frames below are guesses, even if the next address is right.
func guessed(frames []Frame) bool {
	return slices.ContainsFunc(frames, func(f Frame) bool { return !f.Found })
}

func stopped(got []Frame, i int) Class {
	if i > 0 && got[i-1].Found {
		return StopsInfo
	}
	return StopsNoInfo
}

// Describe prints both sides around frame at.
func Describe(f *capture.File, w *capture.Stack, want Want, got []Frame, at int) string {
	s := fmt.Sprintf("%s frame %d", w.Name, at)
	for i := max(0, at-1); i <= at+1; i++ {
		if i < len(want.Frames) {
			s += fmt.Sprintf("\n  ours %d %s sp %#x %v", i, place(f, w.Set, want.Frames[i].IP),
				want.Frames[i].SP, want.Frames[i].Trust)
		}
		if i < len(got) {
			s += fmt.Sprintf("\n  peer %d %s sp %#x found %v", i,
				place(f, w.Set, got[i].IP), got[i].SP, got[i].Found)
		}
	}
	return s
}

// place prints an ip as module and address in it.
func place(f *capture.File, set int, ip uint64) string {
	for _, im := range f.Sets[set] {
		if ip >= im.Start && ip < im.End {
			return fmt.Sprintf("%s+%#x", base(im.Path), ip-im.Bias)
		}
	}
	return fmt.Sprintf("%#x", ip)
}

func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

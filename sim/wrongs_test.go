package sim_test

import (
	"slices"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// wrongs are stacks that no judge may let pass, and words of the reason for which it
// must refuse them. Bend makes a true stack the wrong one; it answers false for a
// recording without such a frame. The result is made to agree with the frames.
var wrongs = []struct {
	name, why string
	bend      func(g *good) bool
}{
	// Frames of a complete stack that are missing, repeated, or invented.
	{"the leaf is missing", "not in the truth", func(g *good) bool { g.out = g.out[1:]; return true }},
	{"the root is missing", "1 frames are missing",
		func(g *good) bool { g.out = g.out[:len(g.out)-1]; return true }},
	{"two frames at the root are missing", "2 frames are missing",
		func(g *good) bool { g.out = g.out[:len(g.out)-2]; return true }},
	{"nothing at all", "the stack ends above", func(g *good) bool { g.out = nil; return true }},
	{"a frame in the midst is missing", "not in the truth",
		func(g *good) bool { g.out = slices.Delete(g.out, 2, 3); return true }},
	{"a frame twice", "not in the truth",
		func(g *good) bool { g.out = slices.Insert(g.out, 2, g.out[1]); return true }},
	{"the root twice", "the stack has ended",
		func(g *good) bool { g.out = append(g.out, g.out[len(g.out)-1]); return true }},
	{"two frames changed places", "not in the truth",
		func(g *good) bool { g.out[1], g.out[2] = g.out[2], g.out[1]; return true }},
	{"root first", "not in the truth", func(g *good) bool { slices.Reverse(g.out); return true }},
	{"an invented frame", "not in the truth",
		func(g *good) bool { g.out = slices.Insert(g.out, 2, invented(g)); return true }},
	{"an invented leaf", "not in the truth",
		func(g *good) bool { g.out = slices.Insert(g.out, 0, invented(g)); return true }},
	{"an invented root", "the stack has ended",
		func(g *good) bool { g.out = append(g.out, invented(g)); return true }},

	// Places.
	{"an ip one byte off", "ip ", at((*good).native, func(f *merge.Frame) { f.IP-- })},
	{"a managed ip one byte off", "ip ", at((*good).method, func(f *merge.Frame) { f.IP++ })},
	{"a stub's ip one byte off", "ip ", at((*good).stub, func(f *merge.Frame) { f.IP++ })},
	{"an unmanaged sp a word off", "sp ", at((*good).native, func(f *merge.Frame) { f.SP += 8 })},
	{"an unmanaged fp a word off", "fp ", at((*good).native, func(f *merge.Frame) { f.FP += 8 })},
	{"a managed sp a word off", "sp ", at((*good).method, func(f *merge.Frame) { f.SP -= 8 })},
	{"a managed fp a word off", "fp ", at((*good).method, func(f *merge.Frame) { f.FP -= 8 })},
	{"the leaf's sp a word off", "sp ", at(leaf, func(f *merge.Frame) { f.SP -= 8 })},
	{"the root's ip", "ip ", at(root, func(f *merge.Frame) { f.IP += 4 })},

	// Labels.
	{"another method", "has function", at((*good).method, func(f *merge.Frame) { f.Function++ })},
	{"a method without its id", "has function", at((*good).method, setFunction(0))},
	{"an unmanaged frame with a method's id", "has function", at((*good).native, setFunction(0x1004))},
	{"a stub with a method's id", "has function", at((*good).stub, setFunction(0x1004))},
	{"a caller said to be interrupted", "interrupted, and has called", at((*good).called, setExact(true))},
	{"the root said to be interrupted", "interrupted, and has called", at(root, setExact(true))},
	{"the leaf said to have called", "called, and was interrupted", at(leaf, setExact(false))},
	{"an unmanaged frame interrupted by a signal said to have called", "called, and was interrupted",
		at(interrupted, setExact(false))},
	{"an unmanaged frame said to be managed", "is said to be managed",
		at((*good).native, setKind(unwind.KindManaged))},
	{"an unmanaged frame said to be a stub", "is said to be stub",
		at((*good).native, setKind(unwind.KindStub))},
	{"an unmanaged frame said to be a signal's", "is said to be signal",
		at((*good).native, setKind(unwind.KindSignal))},
	{"an unmanaged frame said to be of another code generator", "is said to be jit",
		at((*good).native, setKind(unwind.KindJIT))},
	{"a method said to be unmanaged", "is said to be native", at((*good).method, setKind(unwind.KindNative))},
	{"a method said to be a stub", "is said to be stub", at((*good).method, setKind(unwind.KindStub))},
	{"a stub said to be a method", "is said to be managed", at((*good).stub, setKind(unwind.KindManaged))},
	{"a stub said to be unmanaged", "is said to be native", at((*good).stub, setKind(unwind.KindNative))},
	{"a signal's frame said to be unmanaged", "is said to be native",
		at(signalFrame, setKind(unwind.KindNative))},
	{"another module", "has module", at((*good).native, func(f *merge.Frame) { f.Module++ })},
	{"the leaf in no module", "has module", at(leaf, func(f *merge.Frame) { f.Module = -1 })},
	{"a method in a module", "has module", at((*good).method, setModule(0))},
	{"a stub in a module", "has module", at((*good).stub, setModule(0))},
	{"a frame with the reason of a gap", "has the reason of a gap",
		at((*good).native, setGap(merge.GapLimit))},
	{"a method with the reason of a gap", "has the reason of a gap",
		at((*good).method, setGap(merge.GapLimit))},
	{"a frame without trust", "is said to be found by none", at((*good).native, setTrust(unwind.TrustNone))},
	{"a caller found in the context", "is said to be found by context",
		at((*good).called, setTrust(unwind.TrustContext))},
	{"an interrupted caller found in the context", "is said to be found by context",
		at(interrupted, setTrust(unwind.TrustContext))},
	{"the leaf found by unwind data", "is said to be found by cfi", at(leaf, setTrust(unwind.TrustCFI))},
	{"a stub reported by the CLR", "is said to be found by clr", at((*good).stub, setTrust(unwind.TrustCLR))},
	{"a frame of a PE image found by call frame information",
		"is said to be found by cfi", func(g *good) bool {
			return g.r.w.Format() == image.PE &&
				g.change(g.native(), setTrust(unwind.TrustCFI))
		}},
	{"a frame of an ELF image found by PE's unwind data",
		"is said to be found by unwind-info", func(g *good) bool {
			return g.r.w.Format() == image.ELF &&
				g.change(1, setTrust(unwind.TrustUnwindInfo))
		}},
	{"a doubtful frame of another module", "has module",
		at((*good).native, func(f *merge.Frame) { f.Module++; f.Trust = unwind.TrustFramePointer })},
	{"a doubtful frame with a wrong fp, of another module", "has module",
		at((*good).native,
			func(f *merge.Frame) { f.FP++; f.Module++; f.Trust = unwind.TrustFramePointer })},
	{"a doubtful method of another id", "has function",
		at((*good).method, func(f *merge.Frame) { f.Function++; f.Trust = unwind.TrustFramePointer })},

	// Stacks with a gap.
	{"an invented frame behind a gap", "not in the truth", func(g *good) bool {
		g.out = append(g.out[:2], invented(g))
		g.gap(2)
		return true
	}},
	{"a frame twice, before and behind a gap", "not in the truth", func(g *good) bool {
		g.out = append(g.out[:3], g.out[2])
		g.gap(3)
		return true
	}},
	{"out of order behind a gap", "not in the truth", func(g *good) bool {
		g.out = []merge.Frame{g.out[0], g.out[3], g.out[2]}
		g.gap(1)
		return true
	}},
	{"a frame in the midst is missing above a gap", "not in the truth", func(g *good) bool {
		g.gap(3)
		g.out = slices.Delete(g.out, 1, 2)
		return true
	}},
	{"a frame is missing below the frame behind a gap", "not in the truth", func(g *good) bool {
		g.gap(1)
		g.out = slices.Delete(g.out, 3, 4)
		return len(g.out) > 3
	}},
	{"the leaf is missing above a gap", "not in the truth", func(g *good) bool {
		g.gap(3)
		g.out = g.out[1:]
		return true
	}},
	{"the root is missing below a gap", "1 frames are missing", func(g *good) bool {
		g.gap(1)
		g.out = g.out[:len(g.out)-1]
		return true
	}},
	{"another method behind a gap", "has function", func(g *good) bool {
		m := g.method()
		g.out[m].Function++
		g.gap(m)
		return true
	}},
	{"a method's fp behind a gap", "fp ", func(g *good) bool {
		m := g.method()
		g.out[m].FP += 8
		g.gap(m)
		return true
	}},
	{"an unmanaged frame of another module behind a gap", "has module", func(g *good) bool {
		n := g.native()
		if n < 0 {
			return false
		}
		g.out[n].Module++
		g.gap(n)
		return true
	}},

	// Stacks with doubtful frames.
	{"an invented frame behind a doubtful one", "not in the truth", func(g *good) bool {
		g.out = append(doubted(g), invented(g))
		return true
	}},
	{"a frame twice behind a doubtful one", "not in the truth", func(g *good) bool {
		g.out = append(doubted(g), g.out[3], g.out[3])
		return true
	}},
	{"out of order behind a doubtful one", "not in the truth", func(g *good) bool {
		g.out = append(doubted(g), g.out[3], g.out[2])
		return true
	}},
	{"the root is missing below doubtful frames that are there", "1 frames are missing", func(g *good) bool {
		n := g.native()
		g.out = g.out[:len(g.out)-1]
		g.doubt(max(n, 1))
		return n > 0 && n < len(g.out)
	}},
	{"a frame is missing between doubtful frames that are there", "not in the truth", func(g *good) bool {
		n := g.native()
		if n < 0 || n+2 >= len(g.out) || g.out[n+2].Trust != unwind.TrustCLR {
			return false
		}
		g.doubt(n)
		g.out = slices.Delete(g.out, n+1, n+2)
		return true
	}},
	{"the outermost frames twice, first by a guess", "is behind frame", func(g *good) bool {
		at := g.method()
		tail := slices.Clone(g.out[at:])
		g.out = g.out[:at]
		for _, f := range tail[1:] {
			f.Trust = unwind.TrustFramePointer
			g.out = append(g.out, f)
		}
		g.gap(len(g.out))
		g.out = append(g.out, tail...)
		return tail[0].Trust == unwind.TrustCLR && len(tail) > 1
	}},

	{"a guess one word behind the CLR's frame", "is behind frame", func(g *good) bool {
		m := g.method()
		f := g.out[m]
		f.SP, f.Kind, f.Function, f.Trust = f.SP+8, unwind.KindNative, 0, unwind.TrustFramePointer
		g.out = slices.Insert(g.out, m, f)
		return g.out[m+1].Trust == unwind.TrustCLR
	}},

	// Gaps.
	{"a gap without a reason", "without a reason",
		func(g *good) bool { g.gap(2); g.out[2].Gap = merge.GapNone; return true }},
	{"a gap behind a gap", "a gap behind a gap", func(g *good) bool { g.gap(2); g.gap(2); return true }},

	// Verdicts.
	{"no managed frame, where there is one", "no managed frame, says the verdict",
		func(g *good) bool { g.res.Verdict = seed.NoManaged; return true }},
	{"not needed, where the top is unmanaged", "the top frame is managed, says the verdict",
		func(g *good) bool { g.res.Verdict = seed.NotNeeded; return true }},
}

// miscounts are results that do not agree with their frames, and words of the reason to refuse them.
var miscounts = []struct {
	name, why string
	bend      func(g *good) bool
}{
	{"a gap in a stack said to be complete", "the result's gap",
		func(g *good) bool { g.gap(2); g.res.N++; return true }},
	{"a stack said to have a gap", "the result's gap",
		func(g *good) bool { g.res.Gap = merge.GapLimit; return true }},
	{"another gap than the first", "the result's gap", func(g *good) bool {
		g.gap(2)
		g.count()
		g.res.Gap = merge.GapMismatch
		return true
	}},
	{"the last of two gaps", "the result's gap", func(g *good) bool {
		g.gap(1)
		g.gap(3)
		g.count()
		g.out[3].Gap, g.res.Gap = merge.GapMismatch, merge.GapMismatch
		return true
	}},
	{"a frame too many counted", "the result counts", func(g *good) bool { g.res.N++; return true }},
	{"a frame too few counted", "the result counts", func(g *good) bool { g.res.N--; return true }},
	{"a hidden frame too many counted", "hidden frames", func(g *good) bool { g.res.Hidden++; return true }},
	{"a managed frame too few counted", "hidden frames", func(g *good) bool { g.res.Managed--; return true }},
	{"a doubtful frame that is not counted", "rest on a guess", func(g *good) bool {
		g.doubt(root(g))
		g.count()
		g.res.Doubtful--
		return g.res.Doubtful == 0
	}},
	{"a confirmed frame counted as doubtful", "rest on a guess",
		func(g *good) bool { g.res.Doubtful++; return true }},
}

// at changes the frame that which finds.
func at(which func(g *good) int, how func(f *merge.Frame)) func(g *good) bool {
	return func(g *good) bool { return g.change(which(g), how) }
}

// Changes of one label.
func setKind(v unwind.Kind) func(f *merge.Frame)   { return func(f *merge.Frame) { f.Kind = v } }
func setTrust(v unwind.Trust) func(f *merge.Frame) { return func(f *merge.Frame) { f.Trust = v } }
func setModule(v int32) func(f *merge.Frame)       { return func(f *merge.Frame) { f.Module = v } }
func setFunction(v clr.FunctionID) func(f *merge.Frame) {
	return func(f *merge.Frame) { f.Function = v }
}
func setExact(v bool) func(f *merge.Frame)    { return func(f *merge.Frame) { f.Exact = v } }
func setGap(v merge.Gap) func(f *merge.Frame) { return func(f *merge.Frame) { f.Gap = v } }

func leaf(*good) int { return 0 }

func root(g *good) int { return len(g.out) - 1 }

func signalFrame(g *good) int {
	return g.find(0, func(_ *machine.Frame, f *merge.Frame) bool { return f.Kind == unwind.KindSignal })
}

// interrupted is the first unmanaged frame below the leaf that has not called.
func interrupted(g *good) int {
	return g.find(1, func(t *machine.Frame, f *merge.Frame) bool {
		return t.Exact &&
			f.Kind == unwind.KindNative
	})
}

// invented is a frame that is in no truth.
func invented(g *good) merge.Frame {
	f := g.out[0]
	f.IP, f.Exact, f.Trust = 0x1234, false, unwind.TrustLeaf
	return f
}

// doubted is the leaf and a wrong frame that says that it is doubtful.
func doubted(g *good) []merge.Frame {
	f := g.out[1]
	f.IP, f.Trust = f.IP+1, unwind.TrustFramePointer
	return append(slices.Clone(g.out[:1]), f)
}

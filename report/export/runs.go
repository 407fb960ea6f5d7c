package export

import (
	"slices"
	"strings"
)

// A run is a sequence of frames of the .NET runtime without names. The text tree and the folded
// format show a run as one row: by the function with a name that it belongs to, or by its role in
// brackets. A role is never the name of a function. The page does the same when it is opened, and
// can show each frame. The other formats have each frame with its address.

// rows appends the symbols of a stack to out, root first.
func (v *view) rows(p *Profile, s *Stack, out []int32) []int32 {
	last := "" // role of the run before
	for i := len(s.Frames) - 1; i >= 0; {
		f := &p.Frames[s.Frames[i]]
		if n := v.asyncStart(p, s, i); n > 0 {
			i -= n
			continue
		}
		if !v.short || !inRun(f) {
			out = append(out, v.frame(p, s.Frames[i]))
			i--
			continue
		}
		end := i
		for end >= 0 && sameRun(f, &p.Frames[s.Frames[end]]) {
			end--
		}
		caller, callee := frameAt(p, s, i+1), frameAt(p, s, end)
		if caller == nil || !inRun(caller) || isJIT(caller) || isJIT(f) {
			last = role(f, caller, p.Threads[s.Thread].Name)
		}
		if !names(caller, f) && !names(callee, f) {
			out = append(out, v.symbol(symbol{last, clean(f.Module), f.Class, f.Doubtful}))
		}
		i = end
	}
	return out
}

// frame returns the symbol of a frame.
func (v *view) frame(p *Profile, i int32) int32 {
	if v.of[i] < 0 {
		v.of[i] = v.symbol(symbolOf(&p.Frames[i]))
	}
	return v.of[i]
}

// frameAt returns a frame of a stack, nil outside it.
func frameAt(p *Profile, s *Stack, i int) *Frame {
	if i < 0 || i >= len(s.Frames) {
		return nil
	}
	return &p.Frames[s.Frames[i]]
}

func inRun(f *Frame) bool { return f.Class == ClassRuntime && f.Unnamed() }

func sameRun(a, b *Frame) bool {
	return inRun(b) && a.ModuleIndex == b.ModuleIndex && a.Doubtful == b.Doubtful
}

// names reports whether a neighbor of a run names it: a function of the same image that works for
// the run's frames, or for which they work.
func names(neighbor, f *Frame) bool {
	return neighbor != nil && neighbor.Class == ClassRuntime && neighbor.ModuleIndex == f.ModuleIndex && !neighbor.Unnamed()
}

// role returns what the frames of a run do, as far as it is certain. Who calls them says most: only
// the JIT compiler calls its interface to the runtime, and what compiled code calls without a
// name is a helper of the JIT compiler: casts, allocation, static fields, write barriers.
func role(f, caller *Frame, thread string) string {
	switch {
	case isJIT(f), caller != nil && isJIT(caller):
		return "[JIT]"
	case strings.Contains(f.Module, "clrgc"):
		return "[GC]"
	case caller == nil:
	case caller.Class == ClassManaged, caller.Class == ClassStub:
		return "[runtime helper]"
	case slices.Contains(threadStarts, caller.Name):
		return threadRole(thread)
	}
	return "[runtime]"
}

func isJIT(f *Frame) bool { return f.Class == ClassRuntime && strings.Contains(f.Module, "clrjit") }

// threadStarts are the functions of C libraries that call the first function of a thread.
var threadStarts = []string{"start_thread", "clone", "clone3", "__clone"}

// threadRole returns what a thread of the runtime does, by the name that the runtime gives it.
// Linux keeps 15 characters of that.
func threadRole(name string) string {
	switch name {
	case ".NET Tiered Com", ".NET Tiered Compilation Worker":
		return "[tiered compilation]"
	case ".NET Finalizer":
		return "[finalizer]"
	case ".NET BGC", ".NET Server GC", ".NET GC":
		return "[GC]"
	}
	return "[thread start]"
}

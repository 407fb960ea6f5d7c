package export

import (
	"regexp"
	"strings"

	"github.com/seedwalk/seedwalk/report/export/category"
	"github.com/seedwalk/seedwalk/report/export/page"
)

// A run is a sequence of frames of the .NET runtime without names. The text tree and the folded
// format show a run as one row: by the function with a name that it belongs to, or by its role in
// brackets. A role is never the name of a function. The page does the same while Fold is on. The other
// formats have each frame with its address.

// rows appends the symbols of a stack to out, root first.
func (v *view) rows(p *Profile, s *Stack, out []int32) []int32 {
	last := "" // role of the run before
	for i := len(s.Frames) - 1; i >= 0; {
		f := &p.Frames[s.Frames[i]]
		if v.short && f.Class == ClassResumer && !f.Doubtful {
			i--
			continue
		}
		if n := v.asyncStart(p, s, i); n > 0 {
			i -= n
			continue
		}
		if !v.short && v.runs == nil || !inRun(f) {
			out = append(out, v.frame(p, s.Frames[i]))
			i--
			continue
		}
		end := i
		for end >= 0 && sameRun(f, &p.Frames[s.Frames[end]]) {
			end--
		}
		caller, callee := frameAt(p, s, i+1), frameAt(p, s, end)
		if caller == nil || !inRun(caller) || category.IsJIT(caller.Module) || category.IsJIT(f.Module) {
			var c category.Caller
			if caller != nil {
				c = category.Caller{Class: caller.Class.String(), Name: caller.Name, Module: caller.Module}
			}
			last = category.RunRole(f.Module, c, p.Threads[s.Thread].Name)
		}
		row := int32(-1)
		if !names(caller, f) && !names(callee, f) {
			row = v.symbol(symbol{last, clean(f.Module), f.Class, f.Doubtful})
		}
		if v.short && row >= 0 {
			out = append(out, row)
		}
		for ; !v.short && i > end; i-- {
			out = append(out, v.runs.At(page.Run{v.frame(p, s.Frames[i]), row}))
			row = -1
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
	return neighbor != nil && neighbor.Class == ClassRuntime && neighbor.ModuleIndex == f.ModuleIndex &&
		!neighbor.Unnamed()
}

// An async method and its body, MoveNext, have the same name. Between the two are methods of the
// class library. The text tree, the folded format, and the page do not show those.

// asyncHelpers are the methods that start or resume the body of an async method. The page has the
// same expression in fold.js.
var asyncHelpers = regexp.MustCompile(`^System\.(Runtime\.CompilerServices\.(Pooling)?Async\w*MethodBuilder(Core)?(<.*>)?(\.\w*StateMachineBox(<.*>)?)?\.(Start|MoveNext|ExecutionContextCallback)|Threading\.ExecutionContext\.(Run|RunInternal|RunFromThreadPoolDispatchLoop))([<(].*)?$`)

// isAsyncBody reports whether a frame is the body of an async method.
func isAsyncBody(f *Frame) bool {
	return f.Class == ClassManaged && strings.Contains(f.Name, " (async")
}

// asyncStart returns how many frames from i on, toward the leaf, only start the body of an async
// method that follows them. It returns 0 for other frames, and if v shows every frame.
func (v *view) asyncStart(p *Profile, s *Stack, i int) int {
	if !v.short {
		return 0
	}
	end := i
	for ; end >= 0; end-- {
		if !v.helps(p, s.Frames[end]) {
			break
		}
	}
	if end < 0 || end == i || !isAsyncBody(&p.Frames[s.Frames[end]]) {
		return 0
	}
	return i - end
}

// helps reports whether a frame is one of asyncHelpers. A doubtful one stays visible.
func (v *view) helps(p *Profile, i int32) bool {
	if v.helpers[i] == 0 {
		f := &p.Frames[i]
		v.helpers[i] = 1
		if f.Class == ClassManaged && !f.Doubtful && asyncHelpers.MatchString(f.Name) {
			v.helpers[i] = 2
		}
	}
	return v.helpers[i] == 2
}

package export

import (
	"regexp"
	"strings"
)

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
// method that follows them; 0 if none, or if v shows every frame.
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

package demangle

import "strings"

// Prefixes of Visual Basic's names.
const (
	basicClosure   = "_Closure$__"
	basicLambda    = "_Lambda$__"
	basicMachine   = "VB$StateMachine_"
	basicStub      = "$VB$ClosureStub_"
	basicAnonymous = "VB$Anonymous"
)

// basicClass parses _Closure$__5-0, where 5 is the number of a method of the type, and VB$StateMachine_5_Run,
// VB$StateMachine___Lambda$__5-1.
func basicClass(class, outer string) (e enclosing) {
	class, _, _ = strings.Cut(class, "`")
	if rest, ok := strings.CutPrefix(class, basicClosure); ok {
		e.kind = closure
		e.number, _, _ = strings.Cut(strings.TrimPrefix(rest, "R"), "-")
		return e
	}
	rest, ok := strings.CutPrefix(class, basicMachine)
	if !ok {
		return e
	}
	e.kind = machine
	_, name, ok := strings.Cut(rest, "_")
	if !ok {
		name = rest
	}
	if strings.HasPrefix(name, basicLambda) {
		e.text, e.note = basicMember(name, outer)
		return e
	}
	e.text = name
	return e
}

// basicMember parses _Lambda$__5-1, and within a closure of method 5 _Lambda$__1. A name with an R converts
// to another delegate and calls the lambda.
func basicMember(m, outer string) (text, what string) {
	if rest, ok := strings.CutPrefix(m, basicLambda); ok {
		number, adapter := strings.CutPrefix(rest, "R")
		if outer != "" && strings.IndexByte(number, '-') < 0 {
			number = outer + "-" + number
		}
		if adapter {
			number += ", adapter"
		}
		return "", "lambda " + number
	}
	if rest, ok := strings.CutPrefix(m, basicStub); ok {
		rest, _ = strings.CutSuffix(rest, "_MyBase")
		rest, _ = strings.CutSuffix(rest, "_MyClass")
		return rest, "base call"
	}
	return fsharpSuffix(explicit(m)), ""
}

// basicType writes VB$AnonymousType_0 like C#'s: AnonymousType0.
func basicType(p string) string {
	before, after, ok := strings.Cut(p, basicAnonymous)
	if !ok {
		return p
	}
	return before + "Anonymous" + strings.Replace(after, "_", "", 1)
}

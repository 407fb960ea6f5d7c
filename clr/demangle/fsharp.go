package demangle

import "strings"

// atLine parses name@12-3, which F# generates for name in line 12: the fourth with that name. A T after the
// line marks a generic function.
func atLine(s string) (name, index, line string, ok bool) {
	s, _, _ = strings.Cut(s, "`")
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return "", "", "", false
	}
	name = s[:at]
	line, index, _ = strings.Cut(strings.TrimSuffix(s[at+1:], "T"), "-")
	ok = line != "" && digits(line) && digits(index)
	return name, index, line, ok
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// fsharpClosure parses a class of F#: a lambda, a sequence, a task, or an object expression. The compiler
// names a lambda outside all functions clo. Those of |> are in a pipe.
func fsharpClosure(class string) (e enclosing) {
	name, index, line, ok := atLine(class)
	if !ok {
		return e
	}
	e.kind, e.number, e.note = fsharpClass, index, "line "+line
	dot := lastDot(name) + 1
	switch own := name[dot:]; {
	case strings.HasPrefix(own, "Pipe #"):
		e.text, e.note = strings.TrimSuffix(name[:dot], "."), "pipe in line "+line
	case own == "clo":
		e.text = strings.TrimSuffix(name[:dot], ".")
	default:
		// A class name has dashes instead of dots.
		e.text = name[:dot] + fsharpSuffix(strings.ReplaceAll(own, "-", "."))
	}
	return e
}

// words describes a class of F# by its called method.
var words = map[string]string{
	"Invoke": "lambda", "DirectInvoke": "lambda", "Specialize": "lambda",
	".ctor": "lambda", ".cctor": "lambda",
	"GenerateNext": "sequence", "Close": "sequence", "get_CheckClose": "sequence",
	"get_LastGenerated": "sequence", "GetFreshEnumerator": "sequence",
	"MoveNext": "async", "SetStateMachine": "async", "get_ResumptionPoint": "async",
	"get_Data": "async", "set_Data": "async",
}

// fsharpMember returns what a method adds to its class: only a note for the body that a person wrote.
func fsharpMember(method, generic string, in enclosing) string {
	word, ok := words[method]
	if !ok {
		word = "object"
	}
	if in.number != "" {
		word += " " + in.number
	}
	what := note(word + ", " + in.note)
	switch method {
	case "Invoke", "DirectInvoke", "Specialize", "GenerateNext", "MoveNext":
		return generic + what
	}
	return what + "." + explicit(dashed(method)) + generic
}

// fsharpMethod parses deep@38, a local function that became a method; Compare$cont@4, a part of a long
// method; main@, which a program's start runs; and active patterns.
func fsharpMethod(m string) (text, what string) {
	if m[0] == '|' && m[len(m)-1] == '|' && len(m) > 2 {
		return "(" + m + ")", ""
	}
	name, index, line, ok := atLine(m)
	switch {
	case m == "main@":
		return "main", "entry point"
	case strings.HasSuffix(m, "@") && len(m) > 1:
		return m[:len(m)-1], "startup code"
	case !ok:
		return m, ""
	}
	if index != "" {
		index += ", "
	}
	if long, ok := strings.CutSuffix(name, "$cont"); ok {
		return long, strings.ReplaceAll("part "+index+"line "+line, "part line", "part, line")
	}
	return fsharpSuffix(name), index + "line " + line
}

// fsharpSuffix drops the mark of a version that takes its operators as arguments.
func fsharpSuffix(m string) string { return strings.TrimSuffix(m, "$W") }

// startup reads the name of a startup class, and returns the file's name: <StartupCode$App>.$Program gives
// Program. F# puts code that runs when the program starts into that class, and lambdas of types outside
// modules. It returns typ and false for any other name.
func startup(typ string) (string, bool) {
	rest, ok := strings.CutPrefix(typ, "<StartupCode$")
	_, name, found := strings.Cut(rest, ">.")
	if !ok || !found {
		return typ, false
	}
	return strings.TrimPrefix(name, "$"), true
}

// dashed writes an explicit implementation of F#, A-B-IThing`1-Run, with dots. Only F# has an interface's
// name between dashes.
func dashed(m string) string {
	at := strings.LastIndexByte(m, '-')
	if at <= 0 || strings.IndexByte(m, ' ') >= 0 {
		return m
	}
	typ := m[:at]
	typ = typ[strings.LastIndexByte(typ, '-')+1:]
	if len(typ) < 2 || typ[0] != 'I' || typ[1] < 'A' || typ[1] > 'Z' {
		return m
	}
	return generic(typ, nil) + "." + m[at+1:]
}

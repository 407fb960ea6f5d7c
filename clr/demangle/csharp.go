package demangle

import (
	"slices"
	"strings"
)

// machines are the texts after <M> in the names of state machines: Roslyn's <M>d__0 and, for lambdas and
// local functions, <M>d; mcs's <M>c__async0 and <M>c__Iterator0.
var machines = []string{"d__", "c__async", "c__Iterator"}

// csharpClass parses <M>d__0 and closures: <>c, <>c__DisplayClass0_0, mcs's <M>c__AnonStorey0. A class that
// only marks an extension block, <G>$0123, is treated alike.
func csharpClass(class string) (e enclosing) {
	inner, rest, ok := cutAngles(class)
	if !ok {
		return e
	}
	switch {
	case isMachine(rest):
		e.kind = machine
	case strings.HasPrefix(rest, "c"), (inner == "G" || inner == "M") && len(rest) > 8 && rest[0] == '$':
		e.kind = closure
	default:
		return e
	}
	if rest[0] != '$' {
		// a class name has dashes instead of dots
		e.text, e.note = member(strings.ReplaceAll(inner, "-", "."), "")
	}
	return e
}

func isMachine(rest string) bool {
	return rest == "d" || strings.HasPrefix(rest, "d`") ||
		slices.ContainsFunc(machines, func(m string) bool { return strings.HasPrefix(rest, m) })
}

// csharpType writes a type without the hash of a file-local type, <File>FHASH__Type, and without the suffixes
// of <>f__AnonymousType0`2 and <>z__ReadOnlyArray`1.
func csharpType(p string) string {
	at := max(0, strings.IndexByte(p, '<'))
	if inner, rest, ok := cutAngles(p[at:]); ok && rest != "" {
		if _, local, ok := strings.Cut(rest, "__"); ok && (inner == "" || rest[0] == 'F') {
			p = p[:at] + local
		}
	}
	return p
}

// maxInner bounds nested methods.
const maxInner = 16

// csharpMember returns the readable name of a generated C# method, and in what its kind. The forms are:
//
//	<Main>b__0_1        a lambda of Main
//	<Main>g__Local|0_1  the local function Local of Main
//	<Main>$             the top-level statements
//	<Main>              the caller of an async Main
//	<>n__0              a call of a base method for a lambda
//	<>m__Finally1       a finally block of an iterator
func csharpMember(m string, depth int) (text, what string) {
	inner, rest, ok := cutAngles(m)
	if !ok || depth > maxInner {
		return explicit(m), ""
	}
	of := func() string { text, _ := csharpMember(inner, depth+1); return text }
	switch {
	case rest == "$":
		return csharpMember(inner, depth+1)
	case rest == "" && inner == "Main":
		return inner, "entry point"
	case inner == "" && strings.HasPrefix(rest, "n__"), strings.HasPrefix(rest, "__BaseCallProxy"):
		return inner, "base call"
	case inner == "" && strings.HasPrefix(rest, "m__Finally"):
		return "", "finally " + rest[len("m__Finally"):]
	case strings.HasPrefix(rest, "b__"), strings.HasPrefix(rest, "m__"): // Roslyn's, mcs's
		return of(), strings.TrimSpace("lambda " + ordinal(rest[len("b__"):]))
	case strings.HasPrefix(rest, "g__"):
		local, _, _ := strings.Cut(rest[len("g__"):], "|")
		return of() + "." + local, ""
	}
	return m, ""
}

// ordinal returns a lambda's number within its method, "" for the first: the last of the numbers in 3_0,
// without the generation that follows it in an edited program.
func ordinal(s string) string {
	s, _, _ = strings.Cut(s, "#")
	s = s[strings.LastIndexByte(s, '_')+1:]
	if s == "0" {
		return ""
	}
	return s
}

package clr

import "strings"

// ReadableName turns the metadata name of a method, Namespace.Outer+Inner.M,
// into what its author wrote: nested types with a dot, generic arity as
// <T1,T2>, lambdas, local functions and state machines under the method they
// stand in.
//
// Source: the naming of compiler-generated members, dotnet/roslyn
// src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNames.cs.
func ReadableName(name string) string {
	parts := strings.Split(name, "+")
	last := len(parts) - 1
	typ, method := cutMethod(parts[last])
	parts[last] = typ
	var out []string
	for _, p := range parts {
		switch {
		case isStateMachine(p):
			out = append(out, between(p))
		case strings.HasPrefix(p, "<") && strings.Contains(p, ">c"): // closure classes
		case p != "":
			out = append(out, generic(p))
		}
	}
	return strings.Join(append(out, member(method)), ".")
}

// isStateMachine knows the classes of async methods and iterators: Roslyn's
// <M>d__0, and mcs's <M>c__async0 and <M>c__Iterator0.
func isStateMachine(p string) bool {
	_, rest, ok := strings.Cut(p, ">")
	return ok && strings.HasPrefix(p, "<") && (strings.HasPrefix(rest, "d__") || strings.HasPrefix(rest, "c__async") || strings.HasPrefix(rest, "c__Iterator"))
}

// cutMethod splits Type.Method at the dot before the method's name. A name in
// angle brackets may hold dots, and .ctor begins with one.
func cutMethod(s string) (typ, method string) {
	depth := 0
	for i := len(s) - 1; i > 0; i-- {
		switch s[i] {
		case '>':
			depth++
		case '<':
			depth--
		case '.':
			if depth > 0 {
				continue
			}
			if s[i-1] == '.' {
				i--
			}
			return s[:i], s[i+1:]
		}
	}
	return "", s
}

// member renders the method part: <Main>b__0_1 is a lambda of Main, and
// <Main>g__Local|0_1 its local function Local.
func member(m string) string {
	if !strings.HasPrefix(m, "<") {
		return m
	}
	_, rest, ok := strings.Cut(m, ">")
	if !ok {
		return m
	}
	switch {
	case strings.HasPrefix(rest, "b__"), strings.HasPrefix(rest, "m__"): // Roslyn's, mcs's
		return between(m) + ".lambda_" + rest[len("b__"):]
	case strings.HasPrefix(rest, "g__"):
		local, _, _ := strings.Cut(rest[len("g__"):], "|")
		return between(m) + "." + local
	}
	return m
}

// between returns what stands in the angle brackets at the start of s.
func between(s string) string {
	inner, _, _ := strings.Cut(strings.TrimPrefix(s, "<"), ">")
	return inner
}

// generic writes a type's arity, List`1, as people do: List<T>.
func generic(s string) string {
	base, arity, ok := strings.Cut(s, "`")
	if !ok {
		return s
	}
	switch n := len(arity); {
	case arity == "1":
		return base + "<T>"
	case n == 1 && arity[0] >= '2' && arity[0] <= '9':
		args := make([]string, 0, 9)
		for c := byte('1'); c <= arity[0]; c++ {
			args = append(args, "T"+string(c))
		}
		return base + "<" + strings.Join(args, ",") + ">"
	}
	return base + "<" + arity + ">"
}

package demangle

import (
	"strconv"
	"strings"
)

// cutAngles splits <inner>rest at the bracket that closes the first one.
func cutAngles(s string) (inner, rest string, ok bool) {
	if !strings.HasPrefix(s, "<") {
		return "", s, false
	}
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return s[1:i], s[i+1:], true
			}
		}
	}
	return "", s, false
}

// cutMethod splits a name into type and method.
func cutMethod(s string) (typ, method string) {
	if typ, method, ok := strings.Cut(s, "::"); ok {
		return typ, method
	}
	if at := afterArity(s); at > 0 {
		return s[:at], s[at+1:]
	}
	at := lastDot(s)
	if at < 0 {
		return "", s
	}
	return s[:at], s[at+1:]
}

// afterArity finds the dot after the arity of the innermost type; -1 if the type is not generic, or if a
// bracketed name follows, which may contain dots.
func afterArity(s string) int {
	last := strings.LastIndexByte(s, '+') + 1
	tick := strings.IndexByte(s[last:], '`')
	if tick < 0 {
		return -1
	}
	at := last + tick + 1
	for at < len(s) && s[at] >= '0' && s[at] <= '9' {
		at++
	}
	if at+1 < len(s) && s[at] == '.' {
		return at
	}
	return -1
}

// lastDot finds the dot before the last part of a name, outside brackets. Of two adjacent dots it is the
// first, since .ctor begins with one. It is -1 without a dot.
func lastDot(s string) int {
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
			return i
		}
	}
	return -1
}

// keywords are the C# names of types.
var keywords = map[string]string{"System.Boolean": "bool", "System.Char": "char",
	"System.SByte": "sbyte", "System.Byte": "byte", "System.Int16": "short", "System.UInt16": "ushort",
	"System.Int32": "int", "System.UInt32": "uint", "System.Int64": "long", "System.UInt64": "ulong",
	"System.Single": "float", "System.Double": "double", "System.String": "string",
	"System.Object": "object", "System.IntPtr": "nint", "System.UIntPtr": "nuint", "System.Void": "void"}

// Keyword returns the C# keyword of a type, "" if it has none. name contains the namespace.
func Keyword(name string) string { return keywords[name] }

// explicit removes the namespaces from an explicit implementation, System.IA<B.C>.M, and writes type
// arguments with a keyword as C# does.
func explicit(m string) string {
	if lastDot(m) <= 0 {
		return m
	}
	at := lastDot(m)
	var out strings.Builder
	full, start := 0, 0 // start of the current identifier, with and without its namespace
	for i := 0; i <= at; i++ {
		switch {
		case i == at || strings.IndexByte("<>,[]()*& ", m[i]) >= 0:
			name := m[start:i]
			if word := Keyword(m[full:i]); word != "" {
				name = word
			}
			out.WriteString(name)
			out.WriteByte(m[i])
			full, start = i+1, i+1
		case m[i] == '.':
			start = i + 1
		}
	}
	return out.String() + m[at+1:]
}

// arity returns the number after the tick in a type's name.
func arity(s string) (n int, ok bool) {
	_, text, ok := strings.Cut(s, "`")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0
}

// generic writes a type's arity, List`1, as List<T>, or with its arguments.
func generic(s string, args []string) string {
	base, text, ok := strings.Cut(s, "`")
	if !ok {
		return s
	}
	n, ok := arity(s)
	switch {
	case ok && len(args) == n:
		return base + angles(args)
	case text == "1":
		return base + "<T>"
	case ok && n <= 9 && len(text) == 1:
		args := make([]string, 0, 9)
		for i := range n {
			args = append(args, "T"+strconv.Itoa(i+1))
		}
		return base + angles(args)
	}
	return base + "<" + text + ">"
}

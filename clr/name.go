package clr

import (
	"strconv"
	"strings"
)

// Marks behind the name of a state machine's MoveNext, for callers who have looked
// what its class implements: the name alone does not tell one from the other.
const (
	AsyncMark    = " (async)"
	IteratorMark = " (iterator)"
)

// ReadableName turns the metadata name of a method, Namespace.Outer+Inner::M, into
// what its author wrote: nested types with a dot, generic arity as <T1,T2>, explicit
// implementations without the interface's namespace, and lambdas, local functions and
// state machines as the method they stand in.
//
//	Web+<>c__DisplayClass0_0::<Main>b__5                           Web.Main (lambda 5)
//	Http+<<Fire>g__Events|242_0>d::MoveNext (async)                Http.Fire.Events (async)
//	Conn`1::System.Threading.IThreadPoolWorkItem.Execute           Conn<T>.IThreadPoolWorkItem.Execute
//
// The number of a lambda, counted from 0 within its method and left out if 0, keeps
// the lambdas of one method apart. A single dot may stand for "::"; an explicit
// implementation is then recognised in generic types only.
//
// Source: the naming of compiler-generated members, dotnet/roslyn
// src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNameConstants.cs and
// GeneratedNames.cs; mono/mono mcs/mcs/anonymous.cs for mcs.
func ReadableName(name string) string { return (&MethodName{Name: name}).Readable() }

// MethodName is what is known of a method for people.
type MethodName struct {
	Name       string   // in metadata: see ReadableName
	TypeArgs   []string // of all types it stands in, outer ones first; nil: T, or T1, T2
	Args       []string // the method's own
	Parameters string   // (int, string): of a method that has namesakes in its type; "" of others
}

// Readable is ReadableName with what its types are instantiated over, and what tells
// the method from its namesakes: List<int>.Add, Log.Write<T>(T).
func (m *MethodName) Readable() string {
	name, mark := cutMark(m.Name)
	typ, method := cutMethod(name)
	var out []string
	var in enclosing
	args := m.TypeArgs
	for _, p := range strings.Split(typ, "+") {
		var own []string
		own, args = cutArgs(p, args)
		in = enclosingMethod(p)
		switch {
		case in.machine:
			out = append(out, in.text+angles(own))
		case !in.ok && p != "":
			out = append(out, typeName(p, own))
		}
	}
	if in.machine && method == "MoveNext" && mark != "" {
		return strings.Join(out, ".") + m.Parameters + note(strings.TrimSpace(mark+" "+in.note))
	}
	if in.machine && in.note != "" {
		out[len(out)-1] += note(in.note)
	}
	text, what := member(method)
	if text == "" && in.ok {
		text = in.text // mcs names the method in the class and not in the lambda
	}
	if text += angles(m.Args) + m.Parameters; text != "" {
		out = append(out, text)
	}
	return strings.Join(out, ".") + note(what)
}

// cutArgs takes as many arguments as the arity of a type says.
func cutArgs(p string, args []string) (own, rest []string) {
	n, ok := arity(p)
	if !ok {
		return nil, args
	}
	n = min(n, len(args))
	return args[:n], args[n:]
}

func angles(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return "<" + strings.Join(args, ",") + ">"
}

// note sets words in one pair of parentheses behind a name.
func note(words string) string {
	words = strings.NewReplacer("(", "", ")", "").Replace(words)
	if words == "" {
		return ""
	}
	return " (" + words + ")"
}

func cutMark(name string) (rest, mark string) {
	for _, m := range []string{AsyncMark, IteratorMark} {
		if rest, ok := strings.CutSuffix(name, m); ok {
			return rest, strings.TrimSpace(m)
		}
	}
	return name, ""
}

// enclosing is the method whose lambda or body a compiler-generated class holds.
type enclosing struct {
	text, note string
	machine    bool // a state machine: the class is the method
	ok         bool
}

// machines are what follows <M> in the names of state machines: Roslyn's <M>d__0 and,
// of lambdas and local functions, <M>d; mcs's <M>c__async0 and <M>c__Iterator0.
var machines = []string{"d__", "c__async", "c__Iterator"}

func enclosingMethod(class string) (e enclosing) {
	inner, rest, ok := cutAngles(class)
	if !ok {
		return e
	}
	e.ok = strings.HasPrefix(rest, "c") // closures: <>c, <>c__DisplayClass0_0, mcs's <M>c__AnonStorey0
	e.machine = rest == "d" || strings.HasPrefix(rest, "d`")
	for _, m := range machines {
		e.machine = e.machine || strings.HasPrefix(rest, m)
	}
	if e.ok = e.ok || e.machine; e.ok {
		e.text, e.note = member(strings.ReplaceAll(inner, "-", ".")) // a class name has dashes for dots
	}
	return e
}

// ReadablePart is the own name of a type, Type or <M>d__5, as one who wrote it knows it:
// of what the compiler made of a method, that method; "" of what holds variables only.
func ReadablePart(p string) string {
	if in := enclosingMethod(p); in.ok {
		return in.text + note(in.note)
	}
	return typeName(p, nil)
}

// typeName writes a type as its author did: without the hash of a file-local type,
// <File>FHASH__Type, without what sets <>f__AnonymousType0`2 and <>z__ReadOnlyArray`1
// apart, and with its arguments as people write them.
func typeName(p string, args []string) string {
	at := max(0, strings.IndexByte(p, '<'))
	if inner, rest, ok := cutAngles(p[at:]); ok && rest != "" {
		if _, local, ok := strings.Cut(rest, "__"); ok && (inner == "" || rest[0] == 'F') {
			p = p[:at] + local
		}
	}
	return generic(p, args)
}

// cutAngles splits <inner>rest at the bracket that closes the first.
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

// afterArity finds the dot behind the arity of the innermost type; -1 if it is not
// generic, or if what follows is a bracketed name that may hold dots.
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

// lastDot finds the dot before the last part of a name: none within brackets, and of
// two the first, since .ctor begins with one. -1 if there is none.
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

// member renders a method's own name, and in a few words what it is if the compiler
// made it: <Main>b__0_1 is a lambda of Main, <Main>g__Local|0_1 its local function
// Local, <Main>$ the top-level statements, <Main> what calls an async Main, <>n__0
// what calls a base method for a lambda.
func member(m string) (text, what string) {
	inner, rest, ok := cutAngles(m)
	if !ok {
		return explicit(m), ""
	}
	switch {
	case rest == "$":
		return member(inner)
	case rest == "" && inner == "Main":
		return inner, "entry point"
	case inner == "" && strings.HasPrefix(rest, "n__"):
		return "", "base call"
	case strings.HasPrefix(rest, "b__"), strings.HasPrefix(rest, "m__"): // Roslyn's, mcs's
		text, _ = member(inner)
		return text, strings.TrimSpace("lambda " + ordinal(rest[len("b__"):]))
	case strings.HasPrefix(rest, "g__"):
		local, _, _ := strings.Cut(rest[len("g__"):], "|")
		text, _ = member(inner)
		return text + "." + local, ""
	}
	return m, ""
}

// ordinal is a lambda's number within its method, "" of the first: the last of the
// numbers in 3_0, without the generation of an edited program behind it.
func ordinal(s string) string {
	s, _, _ = strings.Cut(s, "#")
	s = s[strings.LastIndexByte(s, '_')+1:]
	if s == "0" {
		return ""
	}
	return s
}

// explicit takes the namespaces from an explicit implementation, System.IA<B.C>.M.
func explicit(m string) string {
	if lastDot(m) <= 0 {
		return m
	}
	at := lastDot(m)
	var out strings.Builder
	start := 0 // of the identifier under way, less what stood before its last dot
	for i := 0; i <= at; i++ {
		switch {
		case i == at || strings.IndexByte("<>,[] ", m[i]) >= 0:
			out.WriteString(m[start : i+1])
			start = i + 1
		case m[i] == '.':
			start = i + 1
		}
	}
	return out.String() + m[at+1:]
}

// arity is the number behind the tick of a type's name.
func arity(s string) (n int, ok bool) {
	_, text, ok := strings.Cut(s, "`")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0
}

// generic writes a type's arity, List`1, as people do: List<T>, or with its arguments.
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

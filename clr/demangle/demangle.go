// Package demangle turns the names that compilers of C#, F#, and Visual Basic generate for methods into names
// that their authors recognize.
//
// Sources: dotnet/roslyn src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNames.cs and
// src/Compilers/VisualBasic/Portable/Symbols/SynthesizedSymbols/GeneratedNames.vb; dotnet/fsharp
// src/Compiler/Checking/CompilerGlobalState.fs; mono/mono mcs/mcs/anonymous.cs. The tests contain the output
// of these compilers for small programs.
//
// Glossary. A *closure* is a class with the variables and bodies of lambdas. A *state machine* is a class
// whose MoveNext is the body of an async method or an iterator. A *part* is the name of one type in the chain
// of nested types.
//
// Strategy. A name is split into types and a method. Each part is classified separately: C#'s parts begin
// with an angle bracket, F#'s end in @ and a line, Visual Basic's contain a dollar sign. Unknown parts stay
// unchanged. The result is at most a few times as long as the name, and names above MaxName bytes stay
// unchanged.
//
// Known gaps: the name of a Visual Basic lambda does not contain its method. F# names do not show that a
// module had to be renamed (ListModule), nor union cases.
package demangle

import (
	"slices"
	"strings"
)

// MaxName is the length in bytes up to which names are parsed.
const MaxName = 1 << 13

// Suffixes of the name of a state machine's MoveNext, for callers who have checked what its class implements:
// the name alone does not show the kind.
const (
	AsyncMark    = " (async)"
	IteratorMark = " (iterator)"
)

// Name turns the metadata name of a method, Namespace.Outer+Inner::M, into the name that its
// author wrote. Nested types have a dot, and generic arity is <T1,T2>. Explicit implementations
// lose the interface's namespace. Lambdas, local functions, and state machines have the name of
// the method that they are in.
//
//	Web+<>c__DisplayClass0_0::<Main>b__5                           Web.Main (lambda 5)
//	Http+<<Fire>g__Events|242_0>d::MoveNext (async)                Http.Fire.Events (async)
//	Conn`1::System.Threading.IThreadPoolWorkItem.Execute           Conn<T>.IThreadPoolWorkItem.Execute
//	App+work@32-3::Invoke                                          App.work (lambda 3, line 32)
//	App+VB$StateMachine_3_Run::MoveNext (async)                    App.Run (async)
//
// The number of a lambda is left out if it is 0. The input may have a single dot instead of
// "::". An explicit implementation is then recognized in generic types only.
func Name(name string) string { return (&MethodName{Name: name}).Readable() }

// EventName is Name for a name from an event of the runtime. In such names, the type arguments of the type
// are in brackets. EventName leaves them out, because they are the same for all reference types.
func EventName(name string) string {
	open := strings.IndexByte(name, '[')
	if open <= 0 || strings.HasPrefix(name[open:], "[]") || strings.HasPrefix(name[open:], "[,") {
		return Name(name) // an array of an explicit implementation
	}
	depth := 0
	for i := open; i < len(name); i++ {
		switch name[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return Name(name[:open] + name[i+1:])
			}
		}
	}
	return Name(name)
}

// MethodName holds the displayed properties of a method.
type MethodName struct {
	Name       string   // from metadata: see Name
	TypeArgs   []string // of all enclosing types, outer ones first; nil: T, or T1, T2
	Args       []string // the method's own
	Parameters string   // (int, string), for an overloaded method; otherwise ""
}

// Readable returns Name with type arguments and with the parameters of overloads: List<int>.Add,
// Log.Write<T>(T).
func (m *MethodName) Readable() string {
	if len(m.Name) > MaxName {
		return m.Name
	}
	name, mark := cutMark(m.Name)
	typ, method := cutMethod(name)
	typ, start := startup(typ)
	if start && method == ".cctor" && !strings.Contains(typ, "+") {
		return typ + note("startup code")
	}
	var out []string
	var in enclosing
	args := argNames(m.TypeArgs)
	for _, p := range strings.Split(typ, "+") {
		var own []string
		own, args = cutArgs(p, args)
		in = enclosingMethod(p, in.number)
		text := in.text
		switch in.kind {
		case noMethod:
			text = typeName(p, own)
		case machine:
			if text != "" {
				text += angles(own)
			}
		case closure:
			text = ""
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return m.join(strings.Join(out, "."), method, mark, in)
}

// join adds the method to its type.
func (m *MethodName) join(typ, method, mark string, in enclosing) string {
	generic := angles(argNames(m.Args)) + m.Parameters
	switch {
	case in.kind == fsharpClass:
		return typ + fsharpMember(method, generic, in)
	case in.kind == machine && method == "MoveNext" && mark != "":
		return typ + m.Parameters + note(strings.TrimSpace(mark+" "+in.note))
	case in.kind == machine:
		typ += note(in.note)
	case in.kind == closure && (method == ".ctor" || method == ".cctor"):
		return typ + note("closure") + "." + method + generic
	}
	text, what := member(method, in.number)
	if text == "" && in.kind == closure && !strings.HasSuffix(typ, "."+in.text) {
		text = in.text // mcs puts the method's name in the class and not in the lambda
	}
	if text += generic; text != "" && typ != "" {
		text = "." + text
	}
	return typ + text + note(what)
}

// cutArgs takes as many arguments as the arity of a type requires.
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

// argNames replaces type parameters that a compiler has derived from others: Roslyn's <A>j__TPar, Visual
// Basic's SM$U.
func argNames(args []string) []string {
	out := args
	for i, a := range args {
		name := strings.TrimPrefix(a, "SM$")
		if inner, rest, ok := cutAngles(a); ok && rest == "j__TPar" {
			name = inner
		}
		if name == a {
			continue
		}
		if &out[0] == &args[0] {
			out = slices.Clone(args)
		}
		out[i] = name
	}
	return out
}

// note puts words in one pair of parentheses after a name.
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

// kind is the purpose of a compiler-generated class.
type kind uint8

const (
	noMethod    kind = iota // not generated
	closure                 // variables and bodies of lambdas
	machine                 // a state machine: the class is the method
	fsharpClass             // a lambda, an object expression, or a state machine of F#
)

// enclosing is the method whose lambda or body is in a compiler-generated class.
type enclosing struct {
	text, note string
	number     string // of an F# lambda; in Visual Basic, of a closure's method
	kind       kind
}

// enclosingMethod parses the name of a class. outer is the number of the enclosing class.
func enclosingMethod(class, outer string) enclosing {
	switch {
	case strings.HasPrefix(class, "<"):
		return csharpClass(class)
	case strings.IndexByte(class, '@') > 0:
		return fsharpClosure(class)
	case strings.IndexByte(class, '$') > 0:
		return basicClass(class, outer)
	}
	return enclosing{}
}

// Type returns a type's own name, Type or <M>d__5, as its author knows it: for a class generated from a
// method, that method; "" for a class of variables only.
func Type(p string) string {
	if len(p) > MaxName {
		return p
	}
	in := enclosingMethod(p, "")
	if in.kind == noMethod {
		return typeName(p, nil)
	}
	return in.text + note(in.note)
}

// typeName writes a type as its author did, with its arguments.
func typeName(p string, args []string) string { return generic(basicType(csharpType(p)), args) }

// member returns a method's own name, and a short description if the compiler generated it. outer is Visual
// Basic's number for the method of the class.
func member(m, outer string) (text, what string) {
	switch {
	case strings.HasPrefix(m, "<"):
		return csharpMember(m, 0)
	case strings.IndexByte(m, '@') > 0 || strings.IndexByte(m, '|') == 0:
		return fsharpMethod(m)
	case strings.IndexByte(m, '$') >= 0:
		return basicMember(m, outer)
	}
	return explicit(dashed(m)), ""
}

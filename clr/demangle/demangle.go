// Package demangle writes the names that compilers of C#, F#, and Visual Basic give to
// methods as their authors know them.
//
// Sources: dotnet/roslyn src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNames.cs
// and src/Compilers/VisualBasic/Portable/Symbols/SynthesizedSymbols/GeneratedNames.vb;
// dotnet/fsharp src/Compiler/Checking/CompilerGlobalState.fs; mono/mono mcs/mcs/anonymous.cs.
// The tests hold what these compilers wrote for small programs.
//
// Glossary. A *closure* is a class that holds the variables and bodies of lambdas. A *state
// machine* is a class whose MoveNext is the body of an async method or an iterator. A *part*
// is the name of one type in the chain of nested types.
//
// Strategy. A name is split into types and a method. Each part is judged alone: C#'s
// parts begin with an angle bracket, F#'s end in @ and a line, Visual Basic's hold a dollar
// sign. A part that no compiler is known to write stays as it is. The result is at most a
// few times as long as the name, and names above MaxName bytes stay as they are.
//
// Known gaps: a lambda of Visual Basic does not say in which method it is. F# does not say
// in the name that a module had to be renamed (ListModule), nor what a union case is.
package demangle

import (
	"slices"
	"strings"
)

// MaxName bounds the length of a name that is read, in bytes.
const MaxName = 1 << 13

// Marks behind the name of a state machine's MoveNext, for callers who have looked
// what its class implements: the name alone does not tell one from the other.
const (
	AsyncMark    = " (async)"
	IteratorMark = " (iterator)"
)

// Name turns the metadata name of a method, Namespace.Outer+Inner::M, into what its author
// wrote: nested types with a dot, generic arity as <T1,T2>, explicit implementations
// without the interface's namespace, and lambdas, local functions, and state machines as
// the method that they are in.
//
//	Web+<>c__DisplayClass0_0::<Main>b__5                           Web.Main (lambda 5)
//	Http+<<Fire>g__Events|242_0>d::MoveNext (async)                Http.Fire.Events (async)
//	Conn`1::System.Threading.IThreadPoolWorkItem.Execute           Conn<T>.IThreadPoolWorkItem.Execute
//	App+work@32-3::Invoke                                          App.work (lambda 3, line 32)
//	App+VB$StateMachine_3_Run::MoveNext (async)                    App.Run (async)
//
// The number of a lambda is left out if it is 0. A single dot may stand for "::". An
// explicit implementation is then recognized in generic types only.
func Name(name string) string { return (&MethodName{Name: name}).Readable() }

// MethodName is what is known of a method for people.
type MethodName struct {
	Name       string   // in metadata: see Name
	TypeArgs   []string // of all types it is in, outer ones first; nil: T, or T1, T2
	Args       []string // the method's own
	Parameters string   // (int, string): of a method that has namesakes in its type; "" of others
}

// Readable is Name with the type arguments and with what tells the method from its
// namesakes: List<int>.Add, Log.Write<T>(T).
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
		text = in.text // mcs names the method in the class and not in the lambda
	}
	if text += generic; text != "" && typ != "" {
		text = "." + text
	}
	return typ + text + note(what)
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

// argNames replaces type parameters that a compiler has named after others: Roslyn's
// <A>j__TPar, Visual Basic's SM$U.
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

// kind is what a compiler makes a class for.
type kind uint8

const (
	noMethod    kind = iota // a person wrote it
	closure                 // variables and bodies of lambdas
	machine                 // a state machine: the class is the method
	fsharpClass             // a lambda, an object expression, or a state machine of F#
)

// enclosing is the method whose lambda or body a compiler-generated class holds.
type enclosing struct {
	text, note string
	number     string // of a lambda of F#; of Visual Basic that of the method of a closure
	kind       kind
}

// enclosingMethod reads the name of a class. outer is the number of the class around it.
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

// Type is the own name of a type, Type or <M>d__5, as its author knows it: of what a
// compiler made of a method, that method; "" of what holds variables only.
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

// member renders a method's own name, and in a few words what it is if the compiler
// made it. outer is Visual Basic's number for the method of the class.
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

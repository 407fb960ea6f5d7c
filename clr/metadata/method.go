package metadata

import (
	"bytes"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/clr/demangle"
)

// Names holds the displayed properties of a method from metadata.
type Names struct {
	Name       string   // the result of Method
	TypeArgs   []string // names of the type parameters of all enclosing types
	Args       []string // names of its own type parameters
	Parameters string   // (int, string), "" if no other method of its type has its name;
	// for a conversion (int): string
}

// Describe returns the name of the method with a row id, and the parts that distinguish overloads. A part
// that cannot be read is empty; without a name, the result is empty.
func (m *Module) Describe(rid int) Names {
	n := Names{Name: m.Method(rid)}
	if n.Name == "" {
		return n
	}
	owner := m.owner(rid)
	n.TypeArgs, n.Args = m.parameters(tableTypeDef, owner), m.parameters(tableMethodDef, rid)
	if of := m.written(owner, rid); of != 0 && m.overloaded(of) {
		n.Parameters = m.list(of)
	}
	return n
}

// list returns a method's parameter list. A conversion's list also has the result, because conversions are
// overloaded by it. list returns "" if the signature cannot be read.
func (m *Module) list(rid int) string {
	types := scope{m, m.parameters(tableTypeDef, m.owner(rid)), m.parameters(tableMethodDef, rid)}
	list, result, err := Parameters(m.blob(m.cell(tableMethodDef, rid, 4)), types)
	if err != nil {
		return ""
	}
	switch m.text(m.cell(tableMethodDef, rid, 3)) {
	case "op_Explicit", "op_CheckedExplicit", "op_Implicit":
		return list + ": " + result
	}
	return list
}

// RVA returns the address of a method's IL in its image, 0 if it has none.
func (m *Module) RVA(rid int) uint32 { return uint32(m.cell(tableMethodDef, rid, 0)) }

// owner returns the type of a method.
func (m *Module) owner(rid int) int {
	at := rid
	for i := range m.table[tableMethodPtr].rows {
		if m.cell(tableMethodPtr, i+1, 0) == rid {
			at = i + 1
			break
		}
	}
	return sort.Search(m.table[tableTypeDef].rows,
		func(i int) bool { return m.cell(tableTypeDef, i+1, 5) > at })
}

// methodAt returns the row of the method at a position in the list of all types' methods.
func (m *Module) methodAt(i int) int {
	if m.table[tableMethodPtr].rows > 0 {
		return m.cell(tableMethodPtr, i, 0)
	}
	return i
}

// methods returns the positions [first, end) of a type's methods, see methodAt.
func (m *Module) methods(typ int) (first, end int) {
	first, end = m.cell(tableTypeDef, typ, 5), m.table[tableMethodDef].rows+1
	if typ < m.table[tableTypeDef].rows {
		end = min(end, m.cell(tableTypeDef, typ+1, 5))
	}
	return first, end
}

// maxSiblings bounds the methods of a type that are compared with a method.
const maxSiblings = 1 << 13

// overloaded reports whether a method's type has another one with its name.
func (m *Module) overloaded(rid int) bool {
	first, end := m.methods(m.owner(rid))
	name := m.cell(tableMethodDef, rid, 3)
	for i := first; i < min(end, first+maxSiblings); i++ {
		if other := m.methodAt(i); other != rid && m.sameText(m.cell(tableMethodDef, other, 3), name) {
			return true
		}
	}
	return false
}

// sameText compares two strings of the heap: compilers usually write each once, but need not.
func (m *Module) sameText(a, b int) bool {
	if a == b {
		return true
	}
	if a < 0 || b < 0 || a >= len(m.strings) || b >= len(m.strings) {
		return false
	}
	long := bytes.IndexByte(m.strings[a:min(len(m.strings), a+maxName)], 0) + 1
	return long > 0 && b+long <= len(m.strings) && bytes.Equal(m.strings[a:a+long], m.strings[b:b+long])
}

// written returns the method that a person wrote: for a state machine's MoveNext the method that starts it, 0
// if unknown; for others the method itself.
func (m *Module) written(owner, rid int) int {
	if m.machine(owner, m.text(m.cell(tableMethodDef, rid, 3))) == "" {
		return rid
	}
	own := m.text(m.cell(tableTypeDef, owner, 1))
	name, _, ok := strings.Cut(own[1:], ">d__")
	if rest, basic := strings.CutPrefix(own, basicMachine); basic {
		_, name, ok = strings.Cut(rest, "_")
		name, _, _ = strings.Cut(name, "`")
	}
	if !ok {
		return 0
	}
	full := m.Type(owner)
	first, end := m.methods(m.enclosing(owner))
	for i := first; i < min(end, first+maxSiblings); i++ {
		if rid := m.methodAt(i); m.text(m.cell(tableMethodDef, rid, 3)) == name && m.starts(rid, full) {
			return rid
		}
	}
	return 0
}

// maxAttributes bounds the attributes of one method.
const maxAttributes = 64

// starts reports whether an attribute of a method names a class: AsyncStateMachine and similar ones, whose
// one argument is the class (II.23.3).
func (m *Module) starts(method int, class string) bool {
	parent := method << codes['C'].bits // tag 0: MethodDef
	rows := m.table[tableCustomAttribute].rows
	at := sort.Search(rows, func(i int) bool { return m.cell(tableCustomAttribute, i+1, 0) >= parent })
	for i := at + 1; i <= min(rows, at+maxAttributes) && m.cell(tableCustomAttribute, i, 0) == parent; i++ {
		b := m.blob(m.cell(tableCustomAttribute, i, 2))
		if len(b) < 4 || b[0] != 1 || b[1] != 0 {
			continue
		}
		s := decoder{b: b, at: 2}
		n := uint64(s.number())
		if s.err != nil || s.at+n > uint64(len(b)) {
			continue
		}
		name, _, _ := strings.Cut(string(b[s.at:s.at+n]), ",")
		if name == class {
			return true
		}
	}
	return false
}

// maxTypeParameters bounds the type parameters of one type or method.
const maxTypeParameters = 64

// parameters returns the names of the type parameters of a type or a method.
func (m *Module) parameters(table, rid int) []string {
	tag := map[int]int{tableTypeDef: 0, tableMethodDef: 1}[table]
	owner := rid<<1 | tag
	rows := m.table[tableGenericParam].rows
	at := sort.Search(rows, func(i int) bool { return m.cell(tableGenericParam, i+1, 2) >= owner })
	var out []string
	for i := at + 1; i <= min(rows, at+maxTypeParameters) && m.cell(tableGenericParam, i, 2) == owner; i++ {
		name := m.text(m.cell(tableGenericParam, i, 3))
		if name == "" {
			name = "T" + strconv.Itoa(i-at)
		}
		out = append(out, name)
	}
	return out
}

// blob returns an entry of the heap of blobs, or nil.
func (m *Module) blob(index int) []byte {
	s := decoder{b: m.blobs, at: uint64(index)}
	if index < 0 {
		return nil
	}
	n := uint64(s.number())
	if s.err != nil || s.at+n > uint64(len(m.blobs)) {
		return nil
	}
	return m.blobs[s.at : s.at+n]
}

// scope names the types in the signatures of one method.
type scope struct {
	m              *Module
	ofType, method []string // names of the type parameters
}

// Scope names the types of signatures outside a generic type or method.
func (m *Module) Scope() Types { return scope{m: m} }

func (s scope) Type(token uint32, args []string) string {
	rid := int(token & 0xffffff)
	switch token >> 24 {
	case tableTypeDef:
		return TypeName(s.m.Type(rid), args)
	case tableTypeRef:
		return TypeName(s.m.reference(rid), args)
	}
	return ""
}

func (s scope) Variable(ofMethod bool, n uint32) string {
	names := s.ofType
	if ofMethod {
		names = s.method
	}
	if uint64(n) < uint64(len(names)) {
		return names[n]
	}
	if ofMethod {
		return "TM" + strconv.Itoa(int(n)+1)
	}
	return "T" + strconv.Itoa(int(n)+1)
}

// reference returns the name of a type of another module.
func (m *Module) reference(rid int) string {
	return m.nested(tableTypeRef, rid, func(rid int) int {
		if scope := m.cell(tableTypeRef, rid, 0); scope&3 == 3 { // a TypeRef: the outer one
			return scope >> 2
		}
		return 0
	})
}

// Unshared returns type arguments without the runtime's Canonical, which occurs in code shared by all
// reference types. It is replaced by the parameter's name in names, which has the same length. The open
// method has the same names, so that a method has only one name.
func Unshared(args, names []string) []string {
	out := args
	for i, a := range args {
		behind, ok := strings.CutPrefix(a, Canonical)
		if !ok || behind != "" && strings.IndexByte("[*&?", behind[0]) < 0 {
			continue
		}
		if &out[0] == &args[0] {
			out = slices.Clone(args)
		}
		out[i] = names[i] + behind
	}
	return out
}

// TypeName writes Namespace.Outer`1+Inner`1 in source form, without the namespace: Outer<A>.Inner<B>, each
// type with as many of args as it has parameters, int? for Nullable<int>, and _ for Canonical: names such as
// T1 would look like parameters of the method whose name contains the type.
func TypeName(name string, args []string) string {
	if name == "System.Nullable`1" && len(args) == 1 {
		return args[0] + "?"
	}
	args = Unshared(args, slices.Repeat([]string{"_"}, len(args)))
	parts := strings.Split(name, "+")
	outer := parts[0]
	if dot := strings.LastIndexByte(outer, '.'); dot >= 0 && !strings.HasPrefix(outer, "<") {
		parts[0] = outer[dot+1:]
	}
	var out []string
	for _, p := range parts {
		base, own := p, args[:0]
		if name, arity, ok := strings.Cut(p, "`"); ok {
			if n, err := strconv.Atoi(arity); err == nil && n > 0 {
				base, own, args = name, args[:min(n, len(args))], args[min(n, len(args)):]
			}
		}
		if base = demangle.Type(base); len(own) > 0 {
			base += "<" + strings.Join(own, ",") + ">"
		}
		if base != "" {
			out = append(out, base)
		}
	}
	return strings.Join(out, ".")
}

// Fields returns the rows [first, end) of a type's fields.
func (m *Module) Fields(typ int) (first, end int) {
	first, end = m.cell(tableTypeDef, typ, 4), m.table[tableField].rows+1
	if typ < m.table[tableTypeDef].rows {
		end = min(end, m.cell(tableTypeDef, typ+1, 4))
	}
	return first, end
}

// Field returns the name of a field, "" if there is no such row.
func (m *Module) Field(rid int) string { return m.text(m.cell(tableField, rid, 1)) }

// MethodNamed returns the first row of a type's methods with a name, or 0.
func (m *Module) MethodNamed(typ int, name string) int {
	first, end := m.methods(typ)
	for i := first; i < min(end, first+maxSiblings); i++ {
		if rid := m.methodAt(i); m.text(m.cell(tableMethodDef, rid, 3)) == name {
			return rid
		}
	}
	return 0
}

package metadata

import (
	"encoding/binary"
	"strings"
)

// Types names the types in a signature.
type Types interface {
	// Type returns the type of a TypeDef, TypeRef, or TypeSpec token in source form, "" if it has no name.
	// args are its type arguments.
	Type(token uint32, args []string) string
	// Variable returns a type parameter of the method or of its type.
	Variable(ofMethod bool, n uint32) string
}

// Bounds of a signature, above those of real ones.
const (
	maxDepth      = 32
	maxNodes      = 1 << 10 // types in one signature
	maxParameters = 1 << 8  // written
)

// Calling conventions (II.23.2.1).
const (
	callGeneric = 0x10
	callField   = 0x06
	callKind    = 0x0f
)

// Parameters writes the parameter list of a method's signature (II.23.2.1), with parentheses: (int, ref
// string, List<T>[]), and the result. The names are C#'s.
func Parameters(sig []byte, t Types) (list, result string, err error) {
	s := decoder{b: sig, types: t}
	call := s.byte()
	if call&callKind == callField {
		return "", "", &Error{"signature", uint64(call), "of no method"}
	}
	if call&callGeneric != 0 {
		s.number()
	}
	n := s.number()
	result = s.typ(0)
	var out []string
	for i := range n {
		if s.err != nil {
			break
		}
		if i == maxParameters {
			out = append(out, "...")
			break
		}
		out = append(out, s.typ(0))
	}
	if s.err != nil {
		return "", "", s.err
	}
	return "(" + strings.Join(out, ", ") + ")", result, nil
}

// TypeAt writes the type whose signature begins at an offset, and returns the offset of its end.
func TypeAt(sig []byte, at uint32, t Types) (name string, behind uint32, err error) {
	s := decoder{b: sig, at: uint64(at), types: t}
	name = s.typ(0)
	return name, uint32(s.at), s.err
}

// decoder reads a signature; its error sticks.
type decoder struct {
	b     []byte
	at    uint64
	nodes int
	types Types
	err   error
}

func (s *decoder) fail(msg string) {
	if s.err == nil {
		s.err = &Error{"signature", s.at, msg}
	}
}

func (s *decoder) byte() byte {
	if s.err != nil || s.at >= uint64(len(s.b)) {
		s.fail("cut")
		return 0
	}
	s.at++
	return s.b[s.at-1]
}

// number reads a compressed unsigned integer.
func (s *decoder) number() uint32 {
	if s.err != nil {
		return 0
	}
	v, n := Compressed(s.b, s.at)
	if n == 0 {
		s.fail("cut")
	}
	s.at += uint64(n)
	return v
}

// Compressed reads the compressed unsigned integer (II.23.2) at an offset, and returns its number of bytes, 0
// if it is truncated.
func Compressed(b []byte, at uint64) (v uint32, n int) {
	if at >= uint64(len(b)) {
		return 0, 0
	}
	b = b[at:]
	switch first := b[0]; {
	case first&0x80 == 0:
		return uint32(first), 1
	case first&0x40 == 0 && len(b) >= 2:
		return uint32(binary.BigEndian.Uint16(b) & 0x3fff), 2
	case first&0x40 != 0 && len(b) >= 4:
		return binary.BigEndian.Uint32(b) & 0x1fffffff, 4
	}
	return 0, 0
}

// token reads a TypeDefOrRefOrSpecEncoded (II.23.2.8).
func (s *decoder) token() uint32 {
	v := s.number()
	return [4]uint32{tableTypeDef, tableTypeRef, tableTypeSpec, 0}[v&3]<<24 | v>>2
}

// primitives are the element types with a C# keyword (II.23.1.16).
var primitives = map[byte]string{0x01: "void", 0x02: "bool", 0x03: "char", 0x04: "sbyte", 0x05: "byte",
	0x06: "short", 0x07: "ushort",
	0x08: "int", 0x09: "uint", 0x0a: "long", 0x0b: "ulong", 0x0c: "float", 0x0d: "double",
	0x0e: "string", 0x16: "TypedReference",
	0x18: "nint", 0x19: "nuint", 0x1c: "object", 0x3e: Canonical}

// Canonical is the runtime's type argument for code shared by all reference types.
const Canonical = "__Canon"

// typ reads one type (II.23.2.12; 0x3b to 0x45 are the runtime's, corhdr.h and
// readytorun.h).
func (s *decoder) typ(depth int) string {
	if s.nodes++; depth > maxDepth || s.nodes > maxNodes {
		s.fail("too deep or too long")
	}
	if s.err != nil {
		return ""
	}
	code := s.byte()
	if name, ok := primitives[code]; ok {
		return name
	}
	switch code {
	case 0x0f:
		return s.typ(depth+1) + "*"
	case 0x10:
		return "ref " + s.typ(depth+1)
	case 0x11, 0x12:
		return s.named(s.token(), nil)
	case 0x13, 0x1e:
		return s.types.Variable(code == 0x1e, s.number())
	case 0x14:
		return s.array(depth)
	case 0x15:
		return s.instance(depth)
	case 0x1b:
		return s.pointer(depth)
	case 0x1d:
		return s.typ(depth+1) + "[]"
	case 0x1f, 0x20: // a modifier
		s.token()
		return s.typ(depth + 1)
	case 0x41: // variable arguments follow
		return "__arglist"
	case 0x45: // pinned
		return s.typ(depth + 1)
	}
	s.fail("unknown type")
	return ""
}

// named returns a type by its token.
func (s *decoder) named(token uint32, args []string) string {
	if s.err != nil {
		return ""
	}
	if name := s.types.Type(token, args); name != "" {
		return name
	}
	return "?"
}

func (s *decoder) array(depth int) string {
	of, rank := s.typ(depth+1), s.number()
	for range 2 { // sizes, lower bounds
		for n := s.number(); n > 0 && s.err == nil; n-- {
			s.number()
		}
	}
	return of + "[" + strings.Repeat(",", int(min(max(rank, 1), 32)-1)) + "]"
}

func (s *decoder) instance(depth int) string {
	s.byte() // class or value type
	token := s.token()
	var args []string
	for n := s.number(); n > 0 && s.err == nil; n-- {
		args = append(args, s.typ(depth+1))
	}
	return s.named(token, args)
}

// pointer reads a function pointer.
func (s *decoder) pointer(depth int) string {
	if s.byte()&callGeneric != 0 {
		s.number()
	}
	n := s.number()
	result := s.typ(depth + 1)
	var of []string
	for ; n > 0 && s.err == nil; n-- {
		of = append(of, s.typ(depth+1))
	}
	return "delegate*<" + strings.Join(append(of, result), ",") + ">"
}

package naming

import (
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
)

// over replaces the names of type parameters by the types in an encoded method (see native32.method).
// If one of the types is another module's, the names of that list stay.
func (im *image) over(m *demangle.MethodName, b []byte) {
	if len(b) == 0 {
		return
	}
	s := signature{b: b, depth: maxDepth}
	flags := s.number()
	if flags&(methodContext|methodMemberRef|methodSlot) != 0 {
		return
	}
	if flags&methodOwner != 0 {
		if args, behind, ok := im.ownerArgs(b, s.at); ok {
			s.at = behind
			if len(args) == len(m.TypeArgs) {
				m.TypeArgs = metadata.Unshared(args, m.TypeArgs)
			}
		} else {
			s.typ()
		}
	}
	s.number() // the row
	if flags&methodInstantiation == 0 {
		return
	}
	if args, _, ok := im.typesAt(b, s.at); ok && !s.bad && len(args) == len(m.Args) {
		m.Args = metadata.Unshared(args, m.Args)
	}
}

// ownerArgs returns the arguments of the generic type at an offset.
func (im *image) ownerArgs(b []byte, at uint32) (args []string, behind uint32, ok bool) {
	s := signature{b: b, at: at}
	if s.byte() != 0x15 {
		return nil, 0, false
	}
	s.byte()   // class or value type
	s.number() // which
	args, behind, ok = im.typesAt(b, s.at)
	return args, behind, ok && !s.bad
}

// typesAt returns a counted list of types.
func (im *image) typesAt(b []byte, at uint32) (out []string, behind uint32, ok bool) {
	s := signature{b: b, at: at}
	n := s.count()
	for range min(n, maxTypeArgs) {
		name, next, err := metadata.TypeAt(b, s.at, im.md.Scope())
		if err != nil {
			return nil, 0, false
		}
		out, s.at = append(out, name), next
	}
	return out, s.at, !s.bad && n <= maxTypeArgs
}

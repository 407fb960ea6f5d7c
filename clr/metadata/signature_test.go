package metadata

import (
	"bytes"
	"errors"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"strings"
	"testing"
)

// words names types by their token's number, with their arguments.
type words struct{}

func (words) Type(token uint32, args []string) string {
	return TypeName([]string{"", "System.Nullable`1", "A.Dictionary`2+Entry",
		"A.Plain", "B.List`1"}[token&7%5], args)
}

func (words) Variable(ofMethod bool, n uint32) string {
	if ofMethod {
		return "M" + string(rune('0'+n))
	}
	return "T" + string(rune('0'+n))
}

func TestParameters(t *testing.T) {
	for _, c := range []struct {
		name string
		sig  []byte
		want string
	}{
		{"none", []byte{0, 0, 1}, "()"},
		{"instance method, primitives", []byte{0x20, 3, 1, 8, 0x0e, 0x1c}, "(int, string, object)"},
		{"every primitive", []byte{0, 15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0x16, 0x18, 0x19},
			"(bool, char, sbyte, byte, short, ushort, int, uint, long, ulong, float, double, TypedReference, nint, nuint)"},
		{"by reference, pointer, arrays", []byte{0, 4, 1, 0x10, 8, 0x0f, 1, 0x1d, 0x1d, 5, 0x14, 8, 2, 0, 0},
			"(ref int, void*, byte[][], int[,])"},
		{"array with bounds", []byte{0, 1, 1, 0x14, 8, 3, 1, 5, 2, 0, 1}, "(int[,,])"},
		{"class and value type", []byte{0, 2, 1, 0x12, 3<<2 | 1, 0x11, 3 << 2}, "(Plain, Plain)"},
		{"generic method", []byte{0x30, 1, 2, 1, 0x1e, 0, 0x13, 1}, "(M0, T1)"},
		{"generic types", []byte{0, 2, 1, 0x15, 0x12, 4<<2 | 1, 1, 8, 0x15, 0x11, 2 << 2, 2, 0x0e, 0x13, 0},
			"(List<int>, Dictionary<string,T0>.Entry)"},
		{"nullable", []byte{0, 1, 1, 0x15, 0x11, 1 << 2, 1, 8}, "(int?)"},
		{"modifier", []byte{0, 1, 1, 0x1f, 3<<2 | 1, 0x10, 8}, "(ref int)"},
		{"result with modifier and generic",
			[]byte{0, 1, 0x1f, 3<<2 | 1, 0x15, 0x12, 4<<2 | 1, 1, 8, 2}, "(bool)"},
		{"function pointer", []byte{0, 1, 1, 0x1b, 0, 1, 1, 8}, "(delegate*<int,void>)"},
		{"no name", []byte{0, 1, 1, 0x12, 0}, "(?)"},
		{"canonical", []byte{0, 1, 1, 0x3e}, "(__Canon)"},
		{"long number", append([]byte{0, 0x81, 0x2c, 1}, bytes.Repeat([]byte{8}, 300)...),
			"(" + strings.Repeat("int, ", 256) + "...)"},
		{"field", []byte{6, 8}, ""},
		{"empty", nil, ""},
		{"cut", []byte{0, 2, 1, 8}, ""},
		{"unknown type", []byte{0, 1, 1, 0x7f}, ""},
		{"deep", append(append([]byte{0, 1, 1}, bytes.Repeat([]byte{0x1d}, maxDepth)...), 8),
			"(int" + strings.Repeat("[]", maxDepth) + ")"},
		{"too deep", append(append([]byte{0, 1, 1}, bytes.Repeat([]byte{0x1d}, maxDepth+1)...), 8), ""},
		{"too many", append([]byte{0, 1, 1, 0x15, 0x12, 4<<2 | 1, 0x84, 0},
			bytes.Repeat([]byte{8}, maxNodes)...), ""},
		{"count beyond the end", []byte{0, 1, 1, 0x15, 0x12, 0x11, 0xdf, 0xff, 0xff, 0xff, 8}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := Parameters(c.sig, words{})
			var typed *Error
			if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.As(err, &typed) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestTypeName(t *testing.T) {
	for _, c := range []struct {
		in   string
		args []string
		want string
	}{
		{"System.Text.StringBuilder", nil, "StringBuilder"},
		{"A.Outer+Inner", nil, "Outer.Inner"},
		{"A.Outer`1+Inner`2", []string{"x", "y", "z"}, "Outer<x>.Inner<y,z>"},
		{"A.Outer`1+Inner`2", []string{"x", "y"}, "Outer<x>.Inner<y>"},
		{"A.List`1", nil, "List"},
		{"A.Odd`x", []string{"x"}, "Odd<x>"},
		{"A.Session+<Send>d__42", nil, "Session.Send"},
		{"A.Session+<<Send>b__42_1>d", nil, "Session.Send (lambda 1)"},
		{"A.Box`1+<Get>d__3`1", []string{"x", "y"}, "Box<x>.Get<y>"},
		{"A.Session+<>c__DisplayClass4_0", nil, "Session"},
		{"A.Pair`2", []string{"ValueTuple<int,_>", "__Canon"}, "Pair<ValueTuple<int,_>,_>"},
		{"A.Pair`2", []string{"__Canon[]", "__CanonBall"}, "Pair<_[],__CanonBall>"},
		{"<>f__AnonymousType0`2", []string{"x", "y"}, "AnonymousType0<x,y>"},
		{"", nil, ""},
	} {
		expect.Equal(t, TypeName(c.in, c.args), c.want, "TypeName(%q, %q)", c.in, c.args)
	}
}

// The examples of II.23.2, and malformed input.
func TestCompressed(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes []byte
		at    uint64
		want  uint32
		n     int
	}{
		{"one byte", []byte{0x03}, 0, 0x03, 1},
		{"the most of one byte", []byte{0x7f}, 0, 0x7f, 1},
		{"two bytes", []byte{0x80, 0x80}, 0, 0x80, 2},
		{"the most of two bytes", []byte{0xbf, 0xff}, 0, 0x3fff, 2},
		{"four bytes", []byte{0xc0, 0, 0x40, 0}, 0, 0x4000, 4},
		{"the most of four bytes", []byte{0xdf, 0xff, 0xff, 0xff}, 0, 0x1fffffff, 4},
		{"behind others", []byte{0xff, 0xff, 0xae, 0x57, 0xff}, 2, 0x2e57, 2},
		{"nothing", nil, 0, 0, 0},
		{"behind the end", []byte{1, 2}, 1 << 40, 0, 0},
		{"two bytes, cut", []byte{0x80}, 0, 0, 0},
		{"four bytes, cut", []byte{0xc0, 0, 0x40}, 0, 0, 0},
	} {
		if v, n := Compressed(c.bytes, c.at); v != c.want || n != c.n {
			t.Errorf("%s: %#x of %d bytes, want %#x of %d", c.name, v, n, c.want, c.n)
		}
	}
}

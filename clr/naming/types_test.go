package naming

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// words is memory that counts its reads.
type words struct {
	at    map[uint64]uint64
	reads int
}

func (w *words) ReadAt(b []byte, addr uint64) bool {
	w.reads++
	var eight [8]byte
	v, ok := w.at[addr&^7]
	binary.LittleEndian.PutUint64(eight[:], v)
	copy(b, eight[addr&7:])
	return ok
}

// nested makes generic types, one for each level. All type arguments of a type, width in number, are the type
// of the next level. So there are few tables, and very long names. It returns the first type.
func nested(n *Names, w *words, levels, width int) uint64 {
	const module, table, next = 0x9000, 0x10000, 0x1000
	m := clrasm.New()
	m.Type("Pair`2", "A")
	md, err := metadata.Parse(m.Bytes())
	if err != nil {
		panic(err)
	}
	n.modules[module] = &image{md: md}
	for i := range levels {
		at := uint64(table + i*next)
		// flags, the type's row; dictionaries; module
		w.at[at], w.at[at+8], w.at[at+16] = 1<<40, at+0x108, module
		if i < levels-1 {
			w.at[at] |= 0x10
		}
		w.at[at+0x100], w.at[at+0x108] = uint64(width)|1<<32, at+0x200
		for k := range width {
			w.at[at+0x200+uint64(8*k)] = at + next
		}
	}
	return table
}

// TestSharedTypeArguments: a few types that share their arguments have exponentially long names, but the work
// is bounded.
func TestSharedTypeArguments(t *testing.T) {
	for _, c := range []struct {
		name          string
		levels, width int
		named         bool
	}{
		{"as people write", 4, 2, true},
		{"deep and wide", 8, 32, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &words{at: map[uint64]uint64{}}
			n := &Names{Images: NewImages(w), modules: map[uint64]*image{}}
			n.inst = instances{ok: true, tableFlags2: 4, perInst: 8, rowShift: 8}
			n.l.typeModule = 16
			first := nested(n, w, c.levels, c.width)
			m := demangle.MethodName{TypeArgs: make([]string, c.width)}
			n.instantiated(&m, 0, first, 0)
			named := m.TypeArgs[0] != ""
			expect.True(t, named == c.named, "named %v: %q", named, m.TypeArgs)
			expect.True(t, w.reads <= 10*maxTypesNamed, "%d reads", w.reads)
		})
	}
}

// Hardly any two methods of the class library have the same name.
func TestOverloadsOfCoreLib(t *testing.T) {
	at, _ := filepath.Glob("../../.cache/dotnet-9.*/package/dist/System.Private.CoreLib.dll")
	if len(at) == 0 {
		t.Skip("SKIPPED-CHECK: no System.Private.CoreLib.dll in .cache (make deps)")
	}
	b := must.Get(os.ReadFile(at[0]))(t)
	md := must.Get(metadata.Parse(b[max(bytes.Index(b, []byte("BSJB\x01\x00\x01\x00")), 0):]))(t)
	im := image{md: md}
	plain, full := map[string]int{}, map[string]int{}
	rid := 1
	for ; ; rid++ {
		m := im.named(rid)
		if m.Name == "" {
			break
		}
		plain[demangle.Name(m.Name)]++
		full[m.Readable()]++
	}
	before, _ := merged(plain)
	after, names := merged(full)
	expect.Figures(t, rid >= 30000 && before >= 10000,
		"%d methods; %d had the name of another without parameters and arguments, %d have with", rid-1,
		before, after)
	if after*100 > rid {
		t.Errorf("%d methods have the name of another: %q", after, names[:min(len(names), 20)])
	}
}

// merged counts methods that share their names.
func merged(names map[string]int) (n int, which []string) {
	for name, k := range names {
		if k > 1 {
			n += k
			which = append(which, name)
		}
	}
	slices.Sort(which)
	return n, which
}

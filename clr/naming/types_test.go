package naming

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/testkit/clrasm"
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

// nested makes types with two equal type arguments, the next type: few tables, many names. It returns the
// first.
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
			if named := m.TypeArgs[0] != ""; named != c.named {
				t.Errorf("named %v: %q", named, m.TypeArgs)
			}
			if w.reads > 10*maxTypesNamed {
				t.Errorf("%d reads", w.reads)
			}
		})
	}
}

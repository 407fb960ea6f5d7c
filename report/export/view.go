package export

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Indices of values in a path or node.
const (
	valueSamples = iota
	valueWall
	valueCPU
	valueCPUSamples
	valueWaits
	valueWait
	valueLocks
	valueLock
	valueAllocs
	valueAlloc
	valueExceptions
	valuePauses
	valuePause
	valueJITs
	valueJIT
	valueOthers
	numValues
)

type values [numValues]int64

func (v *values) add(o values) {
	for i := range v {
		v[i] += o[i]
	}
}

// symbol groups the frames of one function at several addresses. Doubtful and trusted frames are
// never in one symbol.
type symbol struct {
	name, module string
	class        Class
	doubtful     bool
}

// label returns the name, with the mark of a doubtful frame, for formats that show only names.
func (s *symbol) label() string {
	if s.doubtful {
		return s.name + " [doubtful]"
	}
	return s.name
}

func (s *symbol) compare(o *symbol) int {
	d := 0
	if s.doubtful != o.doubtful {
		d = -1
		if s.doubtful {
			d = 1
		}
	}
	return cmp.Or(strings.Compare(s.name, o.name), strings.Compare(s.module, o.module), cmp.Compare(s.class, o.class), d)
}

// path is a stack as symbols, root first, with every gap.
type path struct {
	thread  int
	symbols []int32
	values  values
}

// view is a profile prepared for the formats for people.
type view struct {
	symbols []symbol
	paths   []path
	total   values
	index   map[symbol]int32
	of      []int32 // symbols of frames, -1 = none yet
	short   bool    // runs are one row each, and async methods have no frames that start them
	helpers []uint8 // of frames, for helps: 0 = not known yet, 1 = no, 2 = yes
}

// newView returns the view of a profile that has passed Check.
func newView(p *Profile) *view { return viewOf(p, false) }

// newShortView is newView with one row for each run (see rows).
func newShortView(p *Profile) *view { return viewOf(p, true) }

func viewOf(p *Profile, short bool) *view {
	v := &view{index: make(map[symbol]int32), of: make([]int32, len(p.Frames)), short: short, helpers: make([]uint8, len(p.Frames))}
	for i := range p.Frames {
		v.of[i] = -1
		if !short {
			v.frame(p, int32(i))
		}
	}
	for i := range p.Stacks {
		v.add(p, &p.Stacks[i])
	}
	return v
}

func symbolOf(f *Frame) symbol {
	s := symbol{clean(f.Name), clean(f.Module), min(f.Class, numClasses-1), f.Doubtful}
	if s.class == ClassGap {
		return symbol{name: gapName(s.name), class: ClassGap}
	}
	if s.name == "" {
		s.name = "?"
	}
	return s
}

// gapName returns the name of a gap with this reason.
func gapName(reason string) string {
	switch {
	case strings.HasPrefix(reason, "["):
		return reason
	case reason == "":
		return "[gap]"
	}
	return "[gap: " + reason + "]"
}

func (v *view) symbol(s symbol) int32 {
	if i, ok := v.index[s]; ok {
		return i
	}
	i := int32(len(v.symbols))
	v.symbols = append(v.symbols, s)
	v.index[s] = i
	return i
}

func (v *view) add(p *Profile, s *Stack) {
	pa := path{thread: s.Thread, values: valuesOf(s)}
	if reason, missing := unmarkedGap(p, s); missing {
		pa.symbols = append(pa.symbols, v.symbol(symbol{name: gapName(clean(reason)), class: ClassGap}))
	}
	pa.symbols = v.rows(p, s, pa.symbols)
	for _, name := range [...]string{clean(s.Type), clean(s.Message)} {
		if name != "" {
			pa.symbols = append(pa.symbols, v.symbol(symbol{name: name, class: ClassType}))
		}
	}
	v.total.add(pa.values)
	v.paths = append(v.paths, pa)
}

// unmarkedGap reports whether a stack lacks frames but has no gap frame. Its root is missing, and
// the formats show a gap there.
func unmarkedGap(p *Profile, s *Stack) (reason string, missing bool) {
	if len(s.Frames) == 0 && s.Gap == "" {
		return "no frames", true
	}
	if s.Complete && s.Gap == "" {
		return "", false
	}
	for _, f := range s.Frames {
		if p.Frames[f].Class == ClassGap {
			return "", false
		}
	}
	return s.Gap, true
}

// clean makes a name safe for lines and terminals: valid UTF-8, without
// control characters and without marks that change the direction of text.
func clean(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unsafeRune(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// node is a call with all its callers; node 0 is the root of all.
type node struct {
	symbol      int32 // -1 for the root
	parent      int32 // less than the node's own index; -1 for the root
	total, self values
	children    []int32 // heaviest first
}

// tree holds the paths, merged from the root. Parents precede children.
type tree struct {
	by    int // value that sorts children
	view  *view
	nodes []node
	ends  []int32 // of path i, its leaf's node
}

func newTree(v *view, by int) *tree {
	t := &tree{view: v, by: by, nodes: []node{{symbol: -1, parent: -1}}}
	type edge struct{ parent, symbol int32 }
	index := make(map[edge]int32)
	for i := range v.paths {
		at := int32(0)
		for _, s := range v.paths[i].symbols {
			e := edge{at, s}
			next, ok := index[e]
			if !ok {
				next = int32(len(t.nodes))
				index[e] = next
				t.nodes = append(t.nodes, node{symbol: s, parent: at})
				t.nodes[at].children = append(t.nodes[at].children, next)
			}
			at = next
		}
		t.nodes[at].self.add(v.paths[i].values)
		t.ends = append(t.ends, at)
	}
	t.sum()
	return t
}

func (t *tree) sum() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		n.total.add(n.self)
		if n.parent >= 0 {
			t.nodes[n.parent].total.add(n.total)
		}
		slices.SortFunc(n.children, t.compare)
	}
}

// counts returns the index of the value with the number of samples of t.by.
func (t *tree) counts() int { return metrics[t.by].count }

// compare puts the heavier node first, equal ones by name.
func (t *tree) compare(a, b int32) int {
	x, y := &t.nodes[a], &t.nodes[b]
	if c := cmp.Compare(y.total[t.by], x.total[t.by]); c != 0 {
		return c
	}
	return t.view.symbols[x.symbol].compare(&t.view.symbols[y.symbol])
}

package export

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export/page"
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
	valueQueued
	valueQueue
	valueStarved
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
	return cmp.Or(strings.Compare(s.name, o.name), strings.Compare(s.module, o.module),
		cmp.Compare(s.class, o.class), strings.Compare(s.label(), o.label()))
}

// path is a stack as symbols, root first, with every gap, and the type and message of an event at the
// leaf.
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
	of      []int32    // symbols of frames, -1 = none yet
	short   bool       // runs are one row each, and async methods have no frames that start them
	runs    *page.Runs // of the page, which can show a run in both ways; nil in other formats
	helpers []uint8    // of frames, for helps: 0 = not known yet, 1 = no, 2 = yes
}

// newView returns the view of a profile that has passed Check.
func newView(p *Profile) *view { return viewOf(p, false, nil) }

// newShortView is newView with one row for each run (see rows).
func newShortView(p *Profile) *view { return viewOf(p, true, nil) }

// newPageView is newView, and the frames of runs are in view.runs.
func newPageView(p *Profile) *view { return viewOf(p, false, new(page.Runs)) }

func viewOf(p *Profile, short bool, r *page.Runs) *view {
	v := &view{runs: r, index: make(map[symbol]int32), of: make([]int32, len(p.Frames)), short: short,
		helpers: make([]uint8, len(p.Frames)), paths: make([]path, 0, len(p.Stacks))}
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
	return intern.Value(v.index, &v.symbols, s)
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
	return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r)
}

// merge returns the nodes of the tree of all paths: the caller and the symbol of each, and the last
// node of each path. Node 0 is the root, and parents precede children. Sorting makes paths that begin
// equally neighbors. So the nodes of a path that exist already are those that it shares with the path
// before.
func (v *view) merge() (parent, symbol, ends []int32) {
	sorted := make([]int32, len(v.paths))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortFunc(sorted, func(a, b int32) int {
		return slices.Compare(v.paths[a].symbols,
			v.paths[b].symbols)
	})
	shared, count := make([]int32, len(sorted)), 1 // symbols in common with the path before; nodes
	for k, i := range sorted {
		if k > 0 {
			shared[k] = commonPrefix(v.paths[sorted[k-1]].symbols, v.paths[i].symbols)
		}
		count += len(v.paths[i].symbols) - int(shared[k])
	}
	parent, symbol = append(make([]int32, 0, count), -1), append(make([]int32, 0, count), -1)
	ends = make([]int32, len(v.paths))
	way := []int32{0} // nodes of the path, from the root
	for k, i := range sorted {
		way = way[:shared[k]+1]
		for _, s := range v.paths[i].symbols[shared[k]:] {
			parent, symbol = append(parent, way[len(way)-1]), append(symbol, s)
			way = append(way, int32(len(symbol)-1))
		}
		ends[i] = way[len(way)-1]
	}
	return parent, symbol, ends
}

func commonPrefix(a, b []int32) (n int32) {
	for int(n) < len(a) && int(n) < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// amount is a value of the tree's metric, and the number of samples behind it.
type amount struct{ value, count int64 }

func (a *amount) add(b amount) { a.value, a.count = a.value+b.value, a.count+b.count }

// tree holds the paths, merged from the root (see merge).
type tree struct {
	by             int // metric
	view           *view
	parent, symbol []int32 // of each node, -1 of the root
	total, self    []amount
	first, child   []int32 // see children
}

// children returns the callees of a node, the heaviest first.
func (t *tree) children(i int32) []int32 { return t.child[t.first[i]:t.first[i+1]] }

func newTree(v *view, by int) *tree {
	parent, symbol, ends := v.merge()
	n := len(parent)
	t := &tree{view: v, by: by, parent: parent, symbol: symbol, total: make([]amount, n),
		self: make([]amount, n), first: make([]int32, n+1), child: make([]int32, n-1)}
	for i, end := range ends {
		values := &v.paths[i].values
		t.self[end].add(amount{values[by], values[metrics[by].count]})
	}
	for i := n - 1; i >= 0; i-- {
		t.total[i].add(t.self[i])
		if i > 0 {
			t.total[parent[i]].add(t.total[i])
			t.first[parent[i]]++
		}
	}
	for i := 1; i <= n; i++ { // now first is the end of a node's children, and it moves to their start
		t.first[i] += t.first[i-1]
	}
	for i := n - 1; i > 0; i-- {
		t.first[parent[i]]--
		t.child[t.first[parent[i]]] = int32(i)
	}
	for i := range int32(n) {
		slices.SortFunc(t.children(i), t.compare)
	}
	return t
}

// compare puts the heavier node first, equal ones by name.
func (t *tree) compare(a, b int32) int {
	if c := cmp.Compare(t.total[b].value, t.total[a].value); c != 0 {
		return c
	}
	return t.view.symbols[t.symbol[a]].compare(&t.view.symbols[t.symbol[b]])
}

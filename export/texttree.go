package export

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// classMarks stand before names, so that classes can be told apart without
// colours.
var classMarks = [numClasses]string{"M", "n", "r", "s", "!", "t"}

// Shape of the tree.
const (
	chainHead   = 2  // of a long chain of only children, the first frames shown
	chainTail   = 2  // and the last
	maxIndent   = 24 // levels, after which lines stay where they are
	narrowing   = 1.05
	percentCols = 16
)

// treeLine is one line before it is cut and coloured.
type treeLine struct {
	total, self int64 // samples; total < 0: none shown
	indent      string
	text        string
	class       Class
	plain       bool // not a frame
	note        string
}

// treeText lays a tree out under one threshold.
type treeText struct {
	tree  *tree
	floor int64 // samples below which a branch is summed up
	limit int   // lines after which the layout is given up
	lines []treeLine
}

// WriteTree writes the hottest merged stacks as a tree from the roots to the
// leaves: share of the samples with callees, share of the function itself,
// class mark, name. Branches below opt.MinPercent are summed up, and so are
// more, from the lightest, where the lines would be more than opt.MaxLines.
// Only children stand below each other without a new level; of long chains the
// middle is left out and counted.
func WriteTree(w io.Writer, p *Profile, opt TextOptions) error {
	if err := p.Check(); err != nil {
		return err
	}
	opt = opt.filled()
	t := newTree(newView(p.sampled()))
	var b strings.Builder
	if t.nodes[0].total[valueSamples] <= 0 {
		b.WriteString("no samples\n")
	} else {
		b.WriteString(opt.paint(sgrDim, heading(opt.Width)) + "\n")
		lines := layTree(t, opt)
		for i := range lines {
			b.WriteString(lines[i].render(t, opt) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// heading names the columns and, as far as the width allows, the marks.
func heading(width int) string {
	parts := []string{"  total    self  "}
	for c, m := range classMarks[:ClassType] { // a type is in no tree of samples
		parts = append(parts, m+" "+classNames[c])
	}
	parts = append(parts, "? doubtful")
	return cut(parts[0]+strings.Join(parts[1:], "  "), width)
}

// layTree raises the threshold until the lines fit.
func layTree(t *tree, opt TextOptions) []treeLine {
	all := t.nodes[0].total[valueSamples]
	floor := opt.MinPercent / 100 * float64(all)
	for {
		l := treeText{tree: t, floor: max(1, int64(math.Ceil(floor))), limit: opt.MaxLines}
		l.branches(0, "", 0)
		if len(l.lines) <= opt.MaxLines {
			return l.lines
		}
		if floor > float64(all) {
			return l.lines[:opt.MaxLines]
		}
		floor = max(floor, 1) * narrowing
	}
}

// kept returns the children at or above the threshold, and sums up the rest.
func (l *treeText) kept(i int32) (keep []int32, rest int, weight int64) {
	for _, c := range l.tree.nodes[i].children {
		if n := l.tree.nodes[c].total[valueSamples]; n >= l.floor {
			keep = append(keep, c)
		} else if n > 0 {
			rest++
			weight += n
		}
	}
	return keep, rest, weight
}

// branches writes the children of node i, each with all below it.
func (l *treeText) branches(i int32, indent string, level int) {
	keep, rest, weight := l.kept(i)
	for _, c := range keep {
		if len(l.lines) > l.limit {
			return
		}
		end := l.chain(c, indent)
		next := indent
		if level < maxIndent {
			next += "  "
		}
		l.branches(end, next, level+1)
	}
	if rest > 0 && weight >= l.floor {
		l.lines = append(l.lines, treeLine{total: weight, indent: indent, plain: true, text: fmt.Sprintf("… %s", lighter(rest))})
	}
}

func lighter(n int) string {
	if n == 1 {
		return "1 lighter branch"
	}
	return thousands(int64(n)) + " lighter branches"
}

// chain writes node i and its line of only children, and returns the last of
// them. A child is an only child if nothing else of its caller is worth a line.
func (l *treeText) chain(i int32, indent string) int32 {
	run := []int32{i}
	for {
		keep, _, weight := l.kept(i)
		if len(keep) != 1 || weight >= l.floor || l.tree.nodes[i].self[valueSamples] >= l.floor {
			break
		}
		i = keep[0]
		run = append(run, i)
	}
	from, to := len(run), len(run)
	if len(run) > chainHead+chainTail+1 {
		from, to = chainHead, len(run)-chainTail
	}
	for k := 0; k < len(run); k++ {
		if k == from && from < to {
			l.elided(run[from:to], indent)
			k = to
		}
		l.frame(run[k], indent, k == 0)
	}
	return i
}

// frame writes a line for a node. Within a chain the total is that of the line
// above, near enough, and is left out unless it says something new.
func (l *treeText) frame(i int32, indent string, first bool) {
	n := &l.tree.nodes[i]
	s := &l.tree.view.symbols[n.symbol]
	line := treeLine{total: n.total[valueSamples], indent: indent, text: s.name, class: s.class}
	if !first && n.total[valueSamples] == l.tree.nodes[n.parent].total[valueSamples] {
		line.total = -1
	}
	if n.self[valueSamples] >= l.floor {
		line.self = n.self[valueSamples]
	}
	if s.doubtful {
		line.text = "? " + s.name
	}
	if s.module != "" && !strings.HasPrefix(s.name, s.module) {
		line.note = s.module
	}
	l.lines = append(l.lines, line)
}

// elided writes what the middle of a chain holds.
func (l *treeText) elided(run []int32, indent string) {
	var count [numClasses]int
	for _, i := range run {
		count[l.tree.view.symbols[l.tree.nodes[i].symbol].class]++
	}
	var parts []string
	for c, n := range count {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, classNames[c]))
		}
	}
	l.lines = append(l.lines, treeLine{total: -1, indent: indent, plain: true,
		text: fmt.Sprintf("⋮ %d frames (%s)", len(run), strings.Join(parts, ", "))})
}

func (l *treeLine) render(t *tree, opt TextOptions) string {
	all := t.nodes[0].total[valueSamples]
	cols := fmt.Sprintf("%7s %7s  ", share(l.total, all), share(l.self, all))
	if l.self == 0 {
		cols = fmt.Sprintf("%7s %7s  ", share(l.total, all), "")
	}
	if l.plain {
		return cols + l.indent + opt.paint(sgrDim, cut(l.text, opt.Width-percentCols-1-len(l.indent)))
	}
	room := opt.Width - percentCols - 1 - len(l.indent) - 2
	note := ""
	if l.note != "" {
		note = "  " + l.note
	}
	name := fit(l.text, max(room-utf8.RuneCountInString(note), room/2, 10))
	note = cut(note, max(0, room-utf8.RuneCountInString(name)))
	return cols + l.indent + opt.paint(classSGR[l.class], classMarks[l.class]+" "+name) + opt.paint(sgrDim, note)
}

// share is a percentage in few columns, "" for a negative part.
func share(part, all int64) string {
	if part < 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all))
}

// fit shortens a name to n runes and keeps its end, which says more than its
// beginning: namespaces come first. Arguments go before namespaces do.
func fit(name string, n int) string {
	if utf8.RuneCountInString(name) <= n {
		return name
	}
	if i := strings.IndexByte(name, '('); i > 0 && name[0] != '[' {
		name = name[:i]
	}
	r := []rune(name)
	if len(r) <= n {
		return name
	}
	return "…" + string(slices.Clone(r[len(r)-(n-1):]))
}

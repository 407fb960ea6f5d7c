package export

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/export/estimate"
	"github.com/seedwalk/seedwalk/report/export/shorten"
)

// classMarks precede names, so that classes can be distinguished without colors.
var classMarks = [numClasses]string{"M", "n", "r", "s", "!", "t", "k", "-", "c", "a"}

// Shape of the tree.
const (
	chainHead  = 2  // of a long chain of only children, the first frames shown
	chainTail  = 2  // and the last
	maxIndent  = 24 // levels; deeper lines are not indented further
	narrowing  = 1.05
	numberCols = 25
)

// treeLine is one line before it is shortened and colored.
type treeLine struct {
	total, self int64 // in the tree's value; total < 0: none shown
	count       int64 // samples of total, 0 = none: an exact clock
	selfCount   int64 // and self
	indent      string
	text        string
	class       Class
	plain       bool // not a frame
	note        string
}

// treeText lays out a tree with one threshold.
type treeText struct {
	tree  *tree
	floor int64 // branches below this value are merged into one line
	limit int   // the layout stops after this many lines
	depth int   // levels that are indented
	lines []treeLine
}

// WriteTree writes the hottest merged stacks as a tree from the roots to the leaves. The
// columns are: share with callees, share of the function itself, samples of the first share,
// class mark, and name. Shares are of CPU time if it was measured, and of samples otherwise. A
// tilde marks shares with fewer than ten samples. Branches below opt.MinPercent are merged into
// one line, and more of the lightest ones if there are more than opt.MaxLines lines. A chain of
// only children stays on one level. The middle of a long chain is omitted and counted.
func WriteTree(w io.Writer, p *Profile, opt TextOptions) error {
	if err := p.Check(); err != nil {
		return err
	}
	p = p.sampledFor()
	by := p.defaultMetric()
	_, err := io.WriteString(w, treeOf(p, by, metrics[by].label, opt.filled()))
	return err
}

// treeOf writes the tree of one value below a heading.
func treeOf(p *Profile, by int, label string, opt TextOptions) string {
	t := newTree(newShortView(p), by)
	if t.total[0].value <= 0 {
		return noSamples
	}
	var b strings.Builder
	b.WriteString(opt.paint(sgrDim, label+": "+t.whole()) + "\n")
	for _, line := range t.heading(opt.Width) {
		b.WriteString(opt.paint(sgrDim, line) + "\n")
	}
	weak := false
	for _, l := range layTree(t, opt) {
		b.WriteString(l.render(t, opt) + "\n")
		weak = weak || estimate.IsWeak(l.count) && l.total >= 0 || estimate.IsWeak(l.selfCount) && l.self > 0
	}
	if weak {
		b.WriteString(opt.paint(sgrDim, weakLegend) + "\n")
	}
	return b.String()
}

// noSamples is the text in place of a tree or table.
const noSamples = "no samples\n"

// weakLegend explains the mark for few samples.
const weakLegend = "~ rests on fewer than 10 samples"

// whole returns the total of the shares.
func (t *tree) whole() string {
	m, all := &metrics[t.by], t.total[0]
	if m.unit == "nanoseconds" {
		return fmt.Sprintf("%s, %s", shortTime(time.Duration(all.value)), plural(all.count, "sample"))
	}
	return Thousands(all.value)
}

// heading names the columns and the marks of the classes that the tree has. Marks that do not fit the width
// are in further lines.
func (t *tree) heading(width int) []string {
	var has [numClasses]bool
	for _, s := range t.symbol[1:] {
		has[t.view.symbols[s].class] = true
	}
	marks := make([]string, 0, numClasses+1)
	for c, m := range classMarks {
		if has[c] || Class(c) < ClassType {
			marks = append(marks, m+" "+classNames[c])
		}
	}
	return shorten.Wrap("  total    self  samples ", append(marks, "? doubtful"), width)
}

// layTree raises the threshold until the lines fit.
func layTree(t *tree, opt TextOptions) []treeLine {
	all := t.total[0].value
	floor := opt.MinPercent / 100 * float64(all)
	for {
		l := treeText{tree: t, floor: max(1, int64(math.Ceil(floor))), limit: opt.MaxLines,
			depth: min(maxIndent, (opt.Width-numberCols-1-2-shorten.Least)/2)}
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

// kept returns the children at or above the threshold, and the total of the rest.
func (l *treeText) kept(i int32) (keep []int32, rest int, weight, count int64) {
	for _, c := range l.tree.children(i) {
		if n := l.tree.total[c]; n.value >= l.floor {
			keep = append(keep, c)
		} else if n.value > 0 {
			rest++
			weight += n.value
			count += n.count
		}
	}
	return keep, rest, weight, count
}

// branches writes the subtrees of the children of node i.
func (l *treeText) branches(i int32, indent string, level int) {
	keep, rest, weight, count := l.kept(i)
	for _, c := range keep {
		if len(l.lines) > l.limit {
			return
		}
		end := l.chain(c, indent)
		next := indent
		if level < l.depth {
			next += "  "
		}
		l.branches(end, next, level+1)
	}
	if rest > 0 && weight >= l.floor {
		l.lines = append(l.lines,
			treeLine{total: weight, count: count, indent: indent, plain: true,
				text: fmt.Sprintf("… %s", lighter(rest))})
	}
}

func lighter(n int) string {
	if n == 1 {
		return "1 lighter branch"
	}
	return Thousands(int64(n)) + " lighter branches"
}

// chain writes node i and its chain of only children, and returns the last of them. A child is
// an only child if its caller has nothing else above the threshold.
func (l *treeText) chain(i int32, indent string) int32 {
	run := []int32{i}
	for {
		keep, _, weight, _ := l.kept(i)
		if len(keep) != 1 || weight >= l.floor || l.tree.self[i].value >= l.floor {
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

// frame writes a line for a node. Within a chain, it omits a total that equals that of the caller.
func (l *treeText) frame(i int32, indent string, first bool) {
	total, self := l.tree.total[i], l.tree.self[i]
	s := &l.tree.view.symbols[l.tree.symbol[i]]
	line := treeLine{total: total.value, count: total.count, indent: indent, text: s.name, class: s.class}
	if !first && total.value == l.tree.total[l.tree.parent[i]].value {
		line.total = -1
	}
	if self.value >= l.floor {
		line.self, line.selfCount = self.value, self.count
	}
	if s.doubtful {
		line.text = "? " + s.name
	}
	if s.module != "" && !strings.HasPrefix(s.name, s.module) {
		line.note = s.module
	}
	l.lines = append(l.lines, line)
}

// elided writes a line for the omitted middle of a chain.
func (l *treeText) elided(run []int32, indent string) {
	var count [numClasses]int
	for _, i := range run {
		count[l.tree.view.symbols[l.tree.symbol[i]].class]++
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
	all := t.total[0].value
	self, count := "", ""
	if l.self > 0 {
		self = estimate.Share(l.self, l.selfCount, all)
	}
	if l.total >= 0 && l.count > 0 {
		count = Thousands(l.count)
	}
	cols := fmt.Sprintf("%7s %7s %8s ", estimate.Share(l.total, l.count, all), self, count)
	if l.plain {
		return cols + l.indent + opt.paint(sgrDim, shorten.Text(l.text, opt.Width-numberCols-1-len(l.indent)))
	}
	name, note := shorten.Both(l.text, l.note, opt.Width-numberCols-1-len(l.indent)-2)
	return cols + l.indent + opt.paint(classSGR[l.class], classMarks[l.class]+" "+name) +
		opt.paint(sgrDim, note)
}

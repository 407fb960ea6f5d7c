package sched

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode"
)

// Sizes in pixels of a 12 px monospaced font.
const (
	charWidth  = 7.3
	lineHeight = 16
	boxMargin  = 10
	maxChars   = 56
	bend       = 30 // how far an edge bows out, so that two opposite ones part
)

// box is a node's place: its centre and half its size.
type box struct{ x, y, w, h float64 }

// SVG draws the graph: the cycle as a ring, everything else on the same circle
// after it.
func (g *Graph) SVG() string {
	boxes := g.layout()
	width, height := frame(boxes)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="monospace" font-size="12">`+"\n",
		width, height, width, height)
	b.WriteString(`<defs>` + arrowHead("r", "#c00") + arrowHead("k", "#444") + `</defs>` + "\n")
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	parallel := map[[2]int]int{}
	var labels []label
	for i, e := range g.Edges {
		pair := [2]int{e.From, e.To}
		labels = append(labels, g.drawEdge(&b, boxes, i, bend*float64(1+parallel[pair])))
		parallel[pair]++
	}
	for i, n := range g.Nodes {
		drawNode(&b, n, boxes[i], i < g.Cycle)
	}
	for _, l := range labels {
		l.draw(&b)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func arrowHead(id, color string) string {
	return fmt.Sprintf(`<marker id="%s" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L10 5L0 10z" fill="%s"/></marker>`, id, color)
}

// layout puts the nodes clockwise on an ellipse that has room for them.
func (g *Graph) layout() []box {
	boxes := make([]box, len(g.Nodes))
	w, h := 0.0, 0.0
	for i, n := range g.Nodes {
		chars := 0
		lines := n.lines()
		for _, l := range lines {
			chars = max(chars, len([]rune(clip(l))))
		}
		boxes[i].w = float64(chars)*charWidth/2 + boxMargin
		boxes[i].h = float64(len(lines))*lineHeight/2 + boxMargin
		w, h = max(w, boxes[i].w), max(h, boxes[i].h)
	}
	if len(boxes) > 1 {
		// Neighbours are at least 2 sin(pi/n) radii apart in one of the two
		// directions; 60 pixels are for the edge's label.
		apart := max(math.Sin(math.Pi/float64(len(boxes))), 0.05)
		w, h = (w+95)/apart, (h+60)/apart
		h = max(h, w*0.35)
	}
	for i := range boxes {
		angle := 2*math.Pi*float64(i)/float64(len(boxes)) - math.Pi/2
		if len(boxes) == 2 {
			angle += math.Pi / 2 * 3 // side by side reads better than stacked
		}
		if len(boxes) > 1 {
			boxes[i].x, boxes[i].y = w*math.Cos(angle), h*math.Sin(angle)
		}
	}
	return boxes
}

// frame moves the boxes so that everything is inside, and returns the size.
func frame(boxes []box) (width, height float64) {
	const border = 70 // for the bows and their labels
	left, top, right, bottom := 0.0, 0.0, 0.0, 0.0
	for i, b := range boxes {
		if i == 0 {
			left, top, right, bottom = b.x-b.w, b.y-b.h, b.x+b.w, b.y+b.h
		}
		left, right = min(left, b.x-b.w), max(right, b.x+b.w)
		top, bottom = min(top, b.y-b.h), max(bottom, b.y+b.h)
	}
	for i := range boxes {
		boxes[i].x += border - left
		boxes[i].y += border - top
	}
	return right - left + 2*border, bottom - top + 2*border
}

// drawEdge draws the line and says where its label belongs.
func (g *Graph) drawEdge(b *strings.Builder, boxes []box, i int, bow float64) label {
	e := g.Edges[i]
	color, head := "#444", "k"
	if g.InCycle(i) {
		color, head = "#c00", "r"
	}
	from, to := boxes[e.From], boxes[e.To]
	var path string
	var lx, ly float64
	if e.From == e.To {
		x, y := from.x, from.y-from.h
		path = fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x+30, y, x+50,
			y-bow*2, x-50, y-bow*2, x-30, y)
		lx, ly = x, y-bow*1.5-6
	} else {
		dx, dy := to.x-from.x, to.y-from.y
		d := math.Hypot(dx, dy)
		// The control point lies left of the way, whichever way it goes.
		cx, cy := (from.x+to.x)/2+dy/d*bow*2, (from.y+to.y)/2-dx/d*bow*2
		x1, y1 := from.border(cx, cy)
		x2, y2 := to.border(cx, cy)
		path = fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", x1, y1, cx, cy, x2, y2)
		lx, ly = (x1+2*cx+x2)/4, (y1+2*cy+y2)/4
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#%s)"/>`+"\n",
		path, color, head)
	return label{lx, ly, color, strings.TrimSuffix(e.Text, ",")}
}

// label is the text of an edge and the place of its middle.
type label struct {
	x, y  float64
	color string
	text  string
}

// Sizes of a label: what fits between two boxes, and its lines' distance.
const labelChars, labelLine = 20, 14

// draw puts the text on a ground of its own, so that no edge strikes it out.
func (l label) draw(b *strings.Builder) {
	lines := wrap(l.text, labelChars)
	chars := 0
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i]) // wrap indents
		chars = max(chars, len([]rune(lines[i])))
	}
	w, h := float64(chars)*charWidth+6, float64(len(lines)*labelLine+2)
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="3" fill="#fff" fill-opacity="0.92"/>`+"\n", l.x-w/2, l.y-h/2, w, h)
	for i, line := range lines {
		y := l.y - h/2 + float64((i+1)*labelLine) - 2
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%s</text>`+"\n",
			l.x, y, l.color, Escape(line))
	}
}

// border is where the line from b's centre to (x, y) leaves b.
func (b box) border(x, y float64) (float64, float64) {
	dx, dy := x-b.x, y-b.y
	t := 1.0
	if dx != 0 {
		t = min(t, b.w/math.Abs(dx))
	}
	if dy != 0 {
		t = min(t, b.h/math.Abs(dy))
	}
	return b.x + dx*t, b.y + dy*t
}

func drawNode(b *strings.Builder, n Node, at box, inCycle bool) {
	round, fill, stroke := 4.0, "#eef3fb", "#444"
	if n.Lock {
		round, fill = at.h, "#fdf3d0"
	}
	if inCycle {
		stroke = "#c00"
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
		at.x-at.w, at.y-at.h, 2*at.w, 2*at.h, round, fill, stroke)
	for i, l := range n.lines() {
		weight := ""
		if i == 0 {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f"%s xml:space="preserve">%s</text>`+"\n",
			at.x-at.w+boxMargin, at.y-at.h+boxMargin+float64(i)*lineHeight+12, weight, Escape(clip(l)))
	}
}

func clip(s string) string {
	if r := []rune(s); len(r) > maxChars {
		return string(r[:maxChars-1]) + "…"
	}
	return s
}

// Escape returns s as text of XML, without the control characters that XML cannot hold.
func Escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?")))
}

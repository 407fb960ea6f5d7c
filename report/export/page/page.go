// Package page writes the page: a flame graph and other views in one file of HTML, which opens in
// any browser and uses no network.
//
// Sources: HTML Living Standard, section 4.12.1 (script elements that hold data).
//
// Glossary. A symbol is a function. A node is a symbol with all its callers. The bulk is what grows
// with the number of stacks.
//
// Strategy. The scripts, the style, and the frame of the document are files of their own, so that
// the tools of each language can check them. The bulk is written number by number.
//
// Known gaps: a browser needs about 100 bytes of memory for each node.
package page

import (
	"bufio"
	"embed"
	"encoding/json"
	"html"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/internal/intern"
)

// The page consists of parts, so that the tools of each language can check them.
//
//go:embed *.html *.css *.js
var parts embed.FS

// join returns parts of the page, one behind the other.
func join(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		part, _ := parts.ReadFile(name)
		b.Write(part)
	}
	return b.String()
}

// Lane is a row below the time axis: start and length of each span, in microseconds.
type Lane struct {
	Name  string  `json:"name"`
	Spans []int64 `json:"spans"`
}

// DoubtfulBit is added to the class of a doubtful symbol.
const DoubtfulBit = 16

// Data is the JSON in the page. Tables refer to each other by index; rows
// are flat arrays, because names of fields would be most of the bytes.
type Data struct {
	Head
	Bulk
}

// Head holds the small fields.
type Head struct {
	Title      string   `json:"title"`
	Facts      []string `json:"facts"`
	Notes      []string `json:"notes"`
	Warning    string   `json:"warning"` // "" = none
	Classes    []string `json:"classes"`
	Categories []string `json:"categories"`
	Modules    []string `json:"modules"`
	Symbols    [][3]any `json:"symbols"`          // name, module, class + DoubtfulBit if doubtful
	Runs       []Run    `json:"runs,omitempty"`   // see Runs
	Threads    [][2]any `json:"threads"`          // label, samples
	Metrics    [][4]any `json:"metrics"`          // name, label, unit, index of the metric that counts
	First      int      `json:"first"`            // metric that the page shows first
	Length     int64    `json:"length,omitempty"` // of the recording, microseconds
	Lanes      []Lane   `json:"lanes,omitempty"`  // what concerns the whole process
	Sources    []string `json:"sources"`          // places in the source, file:line; the first is none
	Diff       any      `json:"diff,omitempty"`   // see diff.js
}

// Texts are texts by index, each once. The first is "".
type Texts struct {
	list  []string
	index map[string]int32
}

// At returns the index of a text. It adds a new one.
func (x *Texts) At(text string) int32 {
	if x.index == nil {
		x.list, x.index = []string{""}, map[string]int32{"": 0}
	}
	return intern.Value(x.index, &x.list, text)
}

// List returns the texts.
func (x *Texts) List() []string {
	x.At("")
	return x.list
}

// Bulk is most of the page. It is encoded number by number, without a copy in memory.
type Bulk struct {
	Parents []int32   `json:"parents"` // of node i+1 (node 0 is the root), as i+1 minus parent
	Nodes   []int32   `json:"nodes"`   // symbol of node i+1, -1-k = that of Runs[k]
	Stacks  [][]int64 `json:"stacks"`  // per thread: node, its value of each metric, node, ...
	Kinds   [][]int32 `json:"kinds"`   // per thread: the category of each of its stacks
	Places  [][]int32 `json:"places"`  // per thread: in Sources, where each stack ends
	Samples []int64   `json:"samples"` // see time.js
	Calls   []int64   `json:"calls"`   // see Calls.List
}

// Write writes the page.
func (d *Data) Write(w io.Writer) error {
	// The encoder writes <, > and & as \u escapes, so that no name can end the
	// script element.
	head, err := json.Marshal(&d.Head)
	if err != nil {
		return err
	}
	js := join("data.js", "time.js", "lines.js", "fold.js", "diff.js", "draw.js",
		"views.js", "page.js", "keys.js")
	before, after, _ := strings.Cut(join("page.html"), "{{data}}")
	text := strings.NewReplacer("{{title}}", html.EscapeString(d.Title), "{{css}}",
		join("page.css"), "{{js}}", js)
	out := bufio.NewWriterSize(w, 1<<16)
	text.WriteString(out, before)
	out.Write(head[:len(head)-1])
	d.Bulk.write(out)
	text.WriteString(out, after)
	return out.Flush()
}

// write writes the fields after those of the head, and ends the object.
func (b *Bulk) write(out *bufio.Writer) {
	out.WriteString(`,"parents":`)
	writeNumbers(out, b.Parents)
	out.WriteString(`,"nodes":`)
	writeNumbers(out, b.Nodes)
	out.WriteString(`,"stacks":`)
	writeRows(out, b.Stacks)
	out.WriteString(`,"kinds":`)
	writeRows(out, b.Kinds)
	out.WriteString(`,"places":`)
	writeRows(out, b.Places)
	out.WriteString(`,"samples":`)
	writeNumbers(out, b.Samples)
	out.WriteString(`,"calls":`)
	writeNumbers(out, b.Calls)
	out.WriteByte('}')
}

func writeRows[T int32 | int64](out *bufio.Writer, rows [][]T) {
	out.WriteByte('[')
	for i, row := range rows {
		if i > 0 {
			out.WriteByte(',')
		}
		writeNumbers(out, row)
	}
	out.WriteByte(']')
}

func writeNumbers[T int32 | int64](out *bufio.Writer, numbers []T) {
	out.WriteByte('[')
	for i, n := range numbers {
		b := out.AvailableBuffer()
		if i > 0 {
			b = append(b, ',')
		}
		out.Write(strconv.AppendInt(b, int64(n), 10))
	}
	out.WriteByte(']')
}

// Calls are the places from which functions call others, with the number of samples.
type Calls map[[3]int32]int64 // by caller and callee (symbols), and place in Sources

// List returns caller, callee, place, and samples of each call, in order.
func (c Calls) List() (list []int64) {
	for _, k := range slices.SortedFunc(maps.Keys(c),
		func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) }) {
		list = append(list, int64(k[0]), int64(k[1]), int64(k[2]), c[k])
	}
	return list
}

// Run is a frame of a run: its symbol, and the symbol that shows the run at its first frame, -1 at the
// others and in a run that its neighbors show.
type Run [2]int32

// Runs are the frames of runs, each once.
type Runs struct {
	List  []Run
	index map[Run]int32
}

// At adds f to List if it is new, and returns -1-i for its index i. Paths and Bulk.Nodes have this
// number in place of a symbol.
func (r *Runs) At(f Run) int32 {
	if r.index == nil {
		r.index = map[Run]int32{}
	}
	return -1 - intern.Value(r.index, &r.List, f)
}

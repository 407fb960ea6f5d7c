package api

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed info.txt callbacks.txt bits.txt results.txt checks.txt topics.txt
var files embed.FS

// Load returns the embedded tables.
var Load = sync.OnceValue(func() *Tables {
	var text [6]string
	for i, name := range []string{"info.txt", "callbacks.txt", "bits.txt",
		"results.txt", "checks.txt", "topics.txt"} {
		b, err := files.ReadFile(name)
		if err != nil {
			panic(err) // embedded
		}
		text[i] = string(b)
	}
	t, err := Parse(text[0], text[1], text[2], text[3], text[4], text[5])
	if err != nil {
		panic(err) // the tests parse the same text
	}
	return t
})

// Parse reads the six tables.
func Parse(info, callbacks, bits, results, checks, topics string) (*Tables, error) {
	t := &Tables{IIDs: map[string]string{}}
	p := parser{t: t}
	p.file("bits.txt", bits, p.bit)
	p.file("results.txt", results, p.result)
	p.file("checks.txt", checks, func(w []string) { p.check(w, &t.Checks) })
	p.file("topics.txt", topics, func(w []string) { p.check(w, &t.Topics) })
	p.file("info.txt", info, p.info)
	p.file("callbacks.txt", callbacks, p.callback)
	return t, p.err
}

// parser reads tables and keeps its first error.
type parser struct {
	t       *Tables
	err     error
	name    string // of the file
	line    int
	slot    int              // of the row before
	head    head             // the current interface
	says    func(w []string) // handles indented lines of the row before
	covered map[string]bool
}

type head struct {
	name    string
	version int
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s:%d: %s", p.name, p.line, fmt.Sprintf(format, args...))
	}
}

// file parses one file: comments, interfaces, rows, and lines that belong to rows.
func (p *parser) file(name, text string, row func(w []string)) {
	p.name, p.line, p.slot, p.head, p.says, p.covered = name, 0, 2, head{}, nil, map[string]bool{}
	for l := range strings.Lines(text) {
		p.line++
		l = strings.TrimRight(l, "\r\n")
		w := strings.Fields(l)
		switch {
		case len(w) == 0 || l[0] == '#':
		case l[0] == ' ' && p.says == nil:
			p.fail("it belongs to no row")
		case l[0] == ' ':
			p.says(w)
		case w[0] == "interface":
			p.open(w)
		default:
			row(w)
		}
	}
}

// open starts an interface: interface NAME VERSION IID.
func (p *parser) open(w []string) {
	if len(w) != 4 || len(w[3]) != 36 {
		p.fail("want: interface NAME VERSION IID")
		return
	}
	p.head = head{w[1], p.number(w[2])}
	if p.t.IIDs[w[1]] != "" {
		p.fail("%s stands twice", w[1])
	}
	p.t.IIDs[w[1]] = w[3]
	p.says = nil
}

// columns checks the number of columns and that the name is new.
func (p *parser) columns(w []string, n, name int) bool {
	if len(w) != n {
		p.fail("%d columns, want %d", len(w), n)
		return false
	}
	if p.covered[w[name]] {
		p.fail("%s stands twice", w[name])
	}
	p.covered[w[name]] = true
	return true
}

func (p *parser) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.fail("%q is no number", s)
	}
	return n
}

func (p *parser) hex(s string) uint32 {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		p.fail("%q is no hexadecimal number of 32 bits", s)
	}
	return uint32(n)
}

// word returns s if it is a word of its column; otherwise it records an error.
func (p *parser) word(column, s string) string {
	if !slices.Contains(words[column], s) {
		p.fail("%q is no word of column %q: %s", s, column, strings.Join(words[column], ", "))
	}
	return s
}

func (p *parser) yes(column, s string) bool { return p.word(column, s) == "yes" }

var yesNo = []string{"yes", "no"}

// words are the allowed words of each column.
var words = map[string][]string{
	"gate":     {"async", "sync", "sync+gc", "init", "own", "stub"},
	"gc":       {"triggers", "notrigger", "unread"},
	"mode":     {"any", "unread"},
	"locks":    {"takes", "none", "reader", "unread"},
	"attach":   yesNo,
	"notify":   yesNo,
	"later":    yesNo,
	"native":   {"yes", "managed", "becomes", "kills"},
	"thread":   {"yes", "reader", "no"},
	"runtime":  {"yes", "refused", "hangs"},
	"scope":    {"triggers", "notrigger", "never"},
	"contract": {"preemptive", "cooperative", "any", "managed-cooperative", "none"},
	"seen":     {"preemptive", "cooperative", "both", "collecting", "native", "unseen"},
	"gets":     {"yes", "no", "only", "none"},
	"word":     {"low", "high"},
}

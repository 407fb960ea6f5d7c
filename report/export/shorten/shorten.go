// Package shorten makes names of functions fit the width of a terminal.
//
// Sources: ECMA-335 for names of managed code; the Itanium C++ ABI, chapter "External Names", for C++.
//
// Glossary. The width of a text is its number of runes.
//
// Strategy: the parts that identify a function least are removed first.
//
// Known gaps: runes that a terminal shows in two columns count as one.
package shorten

import (
	"strings"
	"unicode/utf8"
)

// Name shortens a name to n runes. It removes the parameter list, then type arguments, the longest first, and
// then namespaces from the start, because the end of a name is more specific.
func Name(name string, n int) string {
	if utf8.RuneCountInString(name) <= n {
		return name
	}
	name = withoutParameters(name)
	for utf8.RuneCountInString(name) > n {
		lo, hi := longestTypeArguments(name)
		if hi-lo <= len("…") {
			break
		}
		name = name[:lo] + "…" + name[hi:]
	}
	r := []rune(name)
	if len(r) <= n {
		return name
	}
	end := string(r[len(r)-(n-1):])
	for _, mark := range []string{".", "::"} {
		if _, rest, found := strings.Cut(end, mark); found && strings.Contains(rest, mark) {
			end = rest // begins with a whole word
		}
	}
	return "…" + strings.TrimLeft(end, ".:")
}

// withoutParameters removes the parameter list at the end of a name. It keeps other parentheses, such as
// those of (anonymous namespace)::Run, Main (lambda 2), and operator().
func withoutParameters(name string) string {
	whole := name
	for _, qualifier := range []string{"&", "&", " ", " volatile", " const"} { // the last in C++ first
		name = strings.TrimSuffix(name, qualifier)
	}
	if !strings.HasSuffix(name, ")") {
		return whole
	}
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			if name[i-1] == ' ' || strings.HasSuffix(name[:i], "operator") {
				return name
			}
			return name[:i]
		}
	}
	return name
}

// longestTypeArguments returns the range between the outermost angle brackets that are farthest apart. The
// range is empty if no brackets match, as in operator<.
func longestTypeArguments(name string) (lo, hi int) {
	depth, start := 0, 0
	for i := range len(name) {
		switch {
		case name[i] == '<' && (depth > 0 || i > 0 && !strings.ContainsRune(".+:", rune(name[i-1]))):
			if depth++; depth == 1 {
				start = i + 1
			}
		case name[i] == '>' && depth > 0:
			if depth--; depth == 0 && i-start > hi-lo {
				lo, hi = start, i
			}
		}
	}
	return lo, hi
}

const (
	Least = 10 // runes of a name that Both returns, at least
	usual = 32 // runes that a name gets before its module gets any, if its start would be cut
)

// Both shortens a name and its module to room runes in total. The name loses parameters and type arguments
// first, then the module is shortened. note is the module behind two spaces, "" if it has no room.
func Both(name, module string, room int) (short, note string) {
	if module != "" {
		note = "  " + module
	}
	width := utf8.RuneCountInString(note)
	beside := max(room-width, Least)
	if short = Name(name, beside); strings.HasPrefix(short, "…") {
		short = Name(name, max(beside, room/2, min(room, usual)))
	}
	const least = 5 // the spaces and a few letters
	if left := room - utf8.RuneCountInString(short); left >= min(least, width) {
		return short, Text(note, left)
	}
	return short, ""
}

// Wrap returns head and the entries, two spaces apart, in lines of at most n runes. Further lines are
// indented by the length of head.
func Wrap(head string, entries []string, n int) (lines []string) {
	line := head
	for _, e := range entries {
		if line != head && utf8.RuneCountInString(line+e) > n {
			lines, line = append(lines, strings.TrimRight(line, " ")), strings.Repeat(" ", len(head))
		}
		line += e + "  "
	}
	return append(lines, strings.TrimRight(line, " "))
}

// Text shortens s to n runes, and ends it with "…".
func Text(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns = 110 // of a line of Go, a tab counted as 4
	longString = 50  // characters of a string that may extend beyond that
	maxSubject = 72  // characters of a commit's subject
)

type kind int

const (
	longLine kind = iota
	badWord
)

// fault is one line that breaks a rule.
type fault struct {
	line int
	kind kind
	text string
}

// badWords are private metaphors and archaic verbs; a plain word says the same.
var badWords = regexp.MustCompile(`(?i)\b(told|lent|given back|in vain|goes over to|go over to|stands|leads to|of which|whereof|` +
	`so many that|(?:hold|held|holds) against|anew|a look at|begun|unheard|unforeseen)\b`)

// generated documents repeat texts of Go files, and notes are history.
var generated = regexp.MustCompile(`^docs/(rules|contracts)\.md$|^docs/notes/`)

// faultsOf returns the faults of a file, by its ending.
func faultsOf(name string, b []byte) []fault {
	switch {
	case strings.HasPrefix(name, "testkit/tools/textlint/"), generated.MatchString(name):
		return nil // this tool has to name the words
	case strings.HasSuffix(name, ".go"):
		return faultsOfGo(b)
	}
	return faultsOfMarkdown(b)
}

// faultsOfGo returns the faults of a Go file: long lines, and words in comments.
func faultsOfGo(b []byte) (out []fault) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(b))
	var s scanner.Scanner
	s.Init(file, b, nil, scanner.ScanComments)
	lines := strings.Split(string(b), "\n")
	excused := map[int]bool{} // lines with a comment, or with a long string
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.COMMENT || tok == token.STRING && utf8.RuneCountInString(text)-2 > longString {
			for i := range strings.Count(text, "\n") + 1 {
				excused[file.Line(pos)+i] = true
			}
		}
		if tok != token.COMMENT || strings.HasPrefix(text, "//go:") {
			continue
		}
		first := file.Line(pos)
		for i, line := range strings.Split(text, "\n") {
			if n := columns(lines[first+i-1]); n > maxColumns {
				out = append(out, fault{first + i, longLine,
					fmt.Sprintf("comment ends in column %d, at most %d", n, maxColumns)})
			}
			out = append(out, words(first+i, line)...)
		}
	}
	for i, line := range lines {
		if n := columns(line); n > maxColumns && !excused[i+1] {
			out = append(out, fault{i + 1, longLine,
				fmt.Sprintf("line ends in column %d, at most %d", n, maxColumns)})
		}
	}
	return out
}

// columns is the width of a line, a tab counted as 4.
func columns(line string) (n int) {
	for _, r := range line {
		if n++; r == '\t' {
			n += 3
		}
	}
	return n
}

// faultsOfMarkdown returns the faults in the text of a document. Code blocks are left out.
func faultsOfMarkdown(b []byte) (out []fault) {
	code := false
	for i, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		} else if !code {
			out = append(out, words(i+1, line)...)
		}
	}
	return out
}

func words(line int, text string) (out []fault) {
	for _, w := range badWords.FindAllString(text, -1) {
		out = append(out, fault{line, badWord, fmt.Sprintf("%q: use a plain word", w)})
	}
	return out
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// writeManPages runs the tool's help, and writes a manual page of the tool and of each of its
// commands into a folder: seedwalk.1, seedwalk-record.1, ...
func writeManPages(tool, version, folder string) error {
	top, err := exec.Command(tool, "help").Output()
	if err != nil {
		return fmt.Errorf("%s help: %w", tool, err)
	}
	lines := commandLines(string(top))
	if len(lines) == 0 {
		return fmt.Errorf("%s help lists no commands", tool)
	}
	name := func(parts ...string) string { return strings.Join(append([]string{"seedwalk"}, parts...), "-") }
	pages := map[string][]byte{name(): manPage(name(), "sampling profiler for .NET", version,
		"Usage: seedwalk COMMAND [ARGUMENT]...\n\n"+string(top))}
	for _, c := range lines {
		if c[0] == "help" {
			continue
		}
		text, err := exec.Command(tool, c[0], "--help").Output()
		if err != nil {
			return fmt.Errorf("%s %s --help: %w", tool, c[0], err)
		}
		pages[name(c[0])] = manPage(name(c[0]), c[1], version, string(text))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, page := range pages {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name+".1"), page, 0o644))
	}
	return err
}

// commandLines are the commands of the tool's help with the line that says what each does.
func commandLines(help string) (commands [][2]string) {
	_, list, _ := strings.Cut(help, "\nCommands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			commands = append(commands, [2]string{name, strings.TrimSpace(text)})
		}
	}
	return commands
}

var (
	heading = regexp.MustCompile(`^([A-Z][A-Za-z ]{2,40}): *(.*)$`)
	// entry is a line of a list: a flag, format, or verdict, and behind two spaces what it is.
	entry = regexp.MustCompile(`^  (\S(?:\S| \S)*)(?:  +(\S.*))?$`)
	flags = regexp.MustCompile(`^--[a-z]`)
	// choice is a line of an entry that explains one of its values.
	choice = regexp.MustCompile(`^ +[a-z]+(, [a-z]+)?: `)
)

// manPage makes a page from a help text. The text's usage is the synopsis. A line that ends with a
// colon becomes a heading, and a list keeps its entries. Examples stay as they are.
func manPage(name, line, version, help string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"seedwalk %s\" \"seedwalk\"\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n",
		roff(strings.ToUpper(name)), roff(version), roff(name), roff(line))
	usage, rest, _ := strings.Cut(help, "\n\n")
	b.WriteString(".SH SYNOPSIS\n.nf\n")
	for l := range strings.Lines(usage) {
		fmt.Fprintf(&b, "%s\n", roff(strings.TrimSpace(strings.TrimPrefix(l, "Usage:"))))
	}
	b.WriteString(".fi\n.SH DESCRIPTION\n")
	w := manWriter{b: &b}
	for l := range strings.Lines(rest) {
		w.line(strings.TrimRight(l, "\n"))
	}
	w.verbatim(false)
	return b.Bytes()
}

// manWriter writes the lines of a help text.
type manWriter struct {
	b        *bytes.Buffer
	examples bool // the section's lines stay as they are
	asIs     bool // between .nf and .fi
	listed   bool // an entry of a list was the last
}

func (w *manWriter) verbatim(on bool) {
	if on != w.asIs {
		w.b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[on])
	}
	w.asIs = on
}

func (w *manWriter) line(l string) {
	m := heading.FindStringSubmatch(l)
	e := entry.FindStringSubmatch(l)
	switch {
	case l == "":
		w.verbatim(false)
		w.b.WriteString(".PP\n")
		w.listed = false
	case m != nil && (m[2] == "" || m[1] == "Exit code"):
		w.verbatim(false)
		fmt.Fprintf(w.b, ".SH %s\n", strings.ToUpper(m[1]))
		w.examples, w.listed = m[1] == "Examples", false
		w.text(m[2])
	case w.examples:
		w.verbatim(true)
		w.text(l)
	case e != nil && (e[2] != "" || flags.MatchString(e[1])):
		fmt.Fprintf(w.b, ".TP\n.B %s\n", roff(e[1]))
		w.text(e[2])
		w.listed = true
	case l[0] == ' ' && w.listed:
		if choice.MatchString(l) {
			w.b.WriteString(".br\n")
		}
		w.text(strings.TrimSpace(l))
	case l[0] == ' ':
		w.verbatim(true)
		w.text(l)
	default:
		w.verbatim(false)
		w.text(l)
	}
}

func (w *manWriter) text(l string) {
	if l != "" {
		fmt.Fprintf(w.b, "%s\n", roff(l))
	}
}

// roff escapes what groff would read as its own: backslashes, minus signs, and a point or quote
// at the start of a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^",
		`\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

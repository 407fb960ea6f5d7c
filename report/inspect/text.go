package inspect

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// width is how wide a line of text may be, columns.
const width = 118

// Text writes the summary.
func (s *Summary) Text(w io.Writer) {
	machine := s.Arch
	if s.Machine != "" {
		machine += ", " + s.Machine
	}
	fmt.Fprintf(w, "%s\n  format    %s, %s\n", s.File, s.Format, machine)
	id := s.ID
	if id == "" {
		id = "none"
	}
	fmt.Fprintf(w, "  id        %s\n", id)
	if s.Format == "pe" {
		fmt.Fprintf(w, "  base      %#x\n", s.Base)
	}
	fmt.Fprint(w, "\n  unwind data         address        bytes\n")
	for _, x := range s.Sections {
		fmt.Fprintf(w, "    %-14s %#12x %12d\n", x.Name, x.Addr, x.Size)
	}
	if len(s.Sections) == 0 {
		fmt.Fprint(w, "    none\n")
	}
	fmt.Fprintln(w)
	for _, c := range s.Counts {
		fmt.Fprintf(w, "  %-40s %10d\n", c.Name, c.N)
	}
	for _, p := range s.Problems {
		fmt.Fprintf(w, "  damaged: %s\n", p)
	}
}

// Text writes the function: its data, and then every instruction beside its effect. A ditto mark
// replaces a value that is the same as on the line before.
func (f *Function) Text(w io.Writer) {
	name := f.Name
	if name == "" {
		name = "(no symbol)"
	}
	fmt.Fprintf(w, "%s  [%#x,%#x)  %d bytes\n  %s\n", name, f.Lo, f.Hi, f.Hi-f.Lo, f.From)
	if f.Governs != "" {
		wrapped(w, "  walked by: ", f.Governs)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	if len(f.Data) > 0 {
		fmt.Fprintln(w)
	}
	for _, d := range f.Data {
		wrapped(w, "    ", d)
	}
	if len(f.Lines) > 0 {
		f.lines(w)
	}
	if f.Also != nil {
		fmt.Fprint(w, "\nnot walked by, but there is too:\n\n")
		f.Also.Text(w)
	}
}

func (f *Function) lines(w io.Writer) {
	text, part, cfa := len("instruction"), 0, len("cfa")
	for i := range f.Lines {
		l := &f.Lines[i]
		text, part, cfa = max(text, min(len(l.Text), 44)),
			max(part, len(l.Part)), max(cfa, min(len(l.CFA), 16))
	}
	head := fmt.Sprintf("  %-10s %-*s ", "address", text, "instruction")
	if part > 0 {
		head += fmt.Sprintf("%-*s ", part, "part")
	}
	fmt.Fprintf(w, "\n%s%-*s %s\n", head, cfa, "cfa", "saved (before the instruction runs)")
	for i := range f.Lines {
		l := f.Lines[i]
		if i > 0 {
			ditto(&l, &f.Lines[i-1])
		}
		mark := " "
		if f.Asked == l.Addr || f.Asked > l.Addr && f.Asked < l.Addr+uint64(len(l.Bytes)/2) {
			mark = ">"
		}
		line := fmt.Sprintf("%s %-10x %-*s ", mark, l.Addr, text, cut(l.Text, text))
		if part > 0 {
			line += fmt.Sprintf("%-*s ", part, l.Part)
		}
		line += fmt.Sprintf("%-*s ", cfa, l.CFA)
		wrappedAt(w, line, l.Saved)
	}
}

// ditto replaces what did not change.
func ditto(l, before *Line) {
	if l.CFA == before.CFA && l.Saved == before.Saved && l.CFA != "" {
		l.CFA, l.Saved = `"`, ""
	}
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "~"
}

// wrappedAt writes text after head and continues below it.
func wrappedAt(w io.Writer, head, text string) {
	room := max(width-utf8.RuneCountInString(head), 24)
	for {
		part, rest := fold(text, room)
		fmt.Fprintln(w, strings.TrimRight(head+part, " "))
		if rest == "" {
			return
		}
		head, text = strings.Repeat(" ", utf8.RuneCountInString(head)), rest
	}
}

func wrapped(w io.Writer, indent, text string) { wrappedAt(w, indent, text) }

// fold cuts text at a blank so that the first part has at most room bytes.
func fold(text string, room int) (part, rest string) {
	if len(text) <= room {
		return text, ""
	}
	if i := strings.LastIndex(text[:room], ", "); i > 0 {
		return text[:i+1], text[i+2:]
	}
	if i := strings.LastIndexByte(text[:room], ' '); i > 0 {
		return text[:i], strings.TrimLeft(text[i:], " ")
	}
	return text[:room], text[room:]
}

// Text writes the check.
func (c *Check) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n  %s %s, %d entries, %.2f s, peak %.1f MiB (file %.1f MiB)\n", c.File,
		c.Format, c.Arch, c.Entries, c.Seconds,
		float64(c.PeakKiB)/1024, float64(c.Size)/(1<<20))
	for _, f := range c.Findings {
		fmt.Fprintf(w, "  %-14s %8d  %s\n", f.Class, f.Count, f.What)
		for _, e := range f.Examples {
			wrappedAt(w, strings.Repeat(" ", 28), e)
		}
	}
	if len(c.Findings) == 0 {
		fmt.Fprintln(w, "  nothing found")
	}
}

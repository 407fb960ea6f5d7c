package judge

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Text writes the reason why a point is not right, the values side by side, and the code and unwind
// data at the point.
func (m *Mismatch) Text(w io.Writer) {
	fmt.Fprintf(w, "  %s\n", m.Why)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(m.Values) > 0 {
		fmt.Fprint(t, "    \texpected\tgot\t\n")
	}
	for _, p := range m.Values {
		mark := ""
		if p.Want != p.Got && !strings.Contains(p.Want, " sp ") { // frames are shown in different words
			mark = "<--"
		}
		fmt.Fprintf(t, "    %s\t%s\t%s\t%s\n", p.Name, p.Want, p.Got, mark)
	}
	t.Flush()
	block(w, "code", m.Code)
	block(w, "unwind data", m.Info)
}

func block(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "    %s\n", l)
	}
}

package builder

import (
	"fmt"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/clr/api"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/sim/rules"
)

// AllNames is what `seedwalk rules` lists.
type AllNames struct {
	Info      []string `json:"info"`
	Callbacks []string `json:"callbacks"`
	Bits      []string `json:"bits"`
	Results   []string `json:"results"`
	Rules     []string `json:"rules"`
	Checks    []string `json:"checks"`
	Topics    []string `json:"topics"`
}

func listed() (l AllNames) {
	t := api.Load()
	for _, m := range t.Info {
		l.Info = append(l.Info, m.Name)
	}
	for _, c := range t.Callbacks {
		l.Callbacks = append(l.Callbacks, c.Name)
	}
	for _, b := range t.Bits {
		l.Bits = append(l.Bits, b.Name)
	}
	for _, r := range t.Results {
		l.Results = append(l.Results, r.Name)
	}
	for _, r := range rules.All() {
		l.Rules = append(l.Rules, r.Name)
	}
	for _, r := range rules.TextRules() {
		l.Rules = append(l.Rules, r.Name)
	}
	for _, c := range t.Checks {
		l.Checks = append(l.Checks, c.Name)
	}
	for _, c := range t.Topics {
		l.Topics = append(append(l.Topics, c.Name), c.Aliases...)
	}
	return l
}

func rulesList(asJSON bool) int {
	l := listed()
	if asJSON {
		return cli.PrintJSON("rules", l, "  ")
	}
	w := cli.Stdout
	fmt.Fprintln(w, "Rules of stack walking:")
	for _, r := range rules.All() {
		fmt.Fprintf(w, "  %-20s %s\n", r.Name, r.Line+r.About())
	}
	for _, r := range rules.TextRules() {
		fmt.Fprintf(w, "  %-20s %s\n", r.Name, r.Line)
	}
	for _, g := range []struct {
		head string
		all  []string
	}{{"Methods of the info interfaces", l.Info}, {"Callbacks", l.Callbacks},
		{"Bits of the event mask", l.Bits}, {"HRESULTs", l.Results},
		{"Rules of the checking proxy", l.Checks}, {"Hooks, flags, and symptoms", l.Topics}} {
		fmt.Fprintf(w, "\n%s (%d):\n", g.head, len(g.all))
		for _, line := range fold(strings.Join(g.all, ", "), 96) {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	fmt.Fprintln(w, "\nseedwalk rules NAME says what holds for one of them.")
	return cli.ExitOK
}

// fold breaks a text at blanks, into lines of at most width bytes.
func fold(text string, width int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		switch {
		case line == "":
			line = w
		case len(line)+1+len(w) > width:
			lines, line = append(lines, line), w
		default:
			line += " " + w
		}
	}
	return append(lines, line)
}

const ruleWidth = 98

// field prints a name and its text. Further lines of the text begin below its first.
func field(w io.Writer, name, text string) {
	if text == "" {
		return
	}
	for i, line := range fold(text, ruleWidth-18) {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(w, "  %-15s %s\n", name, line)
	}
}

func (c *Contract) print(w io.Writer) {
	switch {
	case c.Info != nil:
		c.printInfo(w)
	case c.Callback != nil:
		printCallback(w, c.Callback)
	case c.Bit != nil:
		c.printBit(w)
	case c.Result != nil:
		c.printResult(w)
	case c.Check != nil:
		fmt.Fprintf(w, "%s\n\n",
			strings.Join(fold(c.Check.Name+" "+strings.Join(c.Check.Aliases, " "), ruleWidth), "\n  "))
		field(w, "Means", c.Check.Says)
		field(w, "Do", c.Check.Do)
	case c.Listed != nil:
		fmt.Fprintf(w, "%s %s\n\n", c.Listed.Name, c.Listed.IID)
		for _, line := range fold(strings.Join(c.Listed.Methods, ", "), ruleWidth-2) {
			fmt.Fprintf(w, "  %s\n", line)
		}
		fmt.Fprintln(w, "\nseedwalk rules METHOD says what holds for one of them.")
	case c.Rule != nil:
		fmt.Fprintf(w, "%s\n\n", strings.Join(fold(c.Rule.Name+": "+c.Rule.Line, ruleWidth), "\n  "))
		field(w, "Why", c.Rule.Text)
		field(w, "Source", c.Rule.Source)
		field(w, "Enforced by", c.Rule.Enforced)
		field(w, "Provoked", c.Rule.Provoked)
		if c.Rule.Scenario {
			fmt.Fprintf(w, "\nseedwalk sim --scenario %s shows it broken and kept.\n", c.Rule.Name)
		}
	}
}

func (c *Contract) printInfo(w io.Writer) {
	m := c.Info
	fmt.Fprintf(w, "%s: slot %d, %s\n\n", m.Name, m.Slot, m.Interface)
	field(w, "Call it", api.Meanings[string(m.Gate)])
	field(w, "Collection", api.Meanings["gc "+m.GC])
	field(w, "Locks", api.Meanings["locks "+m.Locks])
	field(w, "Native thread", api.Meanings["native "+m.Native])
	field(w, "Thread stopped", api.Meanings["thread "+m.Thread])
	field(w, "Runtime stopped", api.Meanings["runtime "+m.Runtime])
	field(w, "Attached", api.Meanings[fmt.Sprint("attached ", m.Attach)])
	field(w, "Notification", api.Meanings[fmt.Sprint("notification ", m.Notify)])
	field(w, "Needs", strings.Join(m.Needs, ", "))
	for _, s := range m.Says {
		field(w, "Note", s)
	}
	fmt.Fprintf(w, "\n  %-58s %-20s %s\n", "From", ".NET 9", ".NET 10")
	for _, p := range c.Places {
		fmt.Fprintf(w, "  %-58s %-20s %s\n", p.words, p.Net9, p.Net10)
	}
}

func printCallback(w io.Writer, c *api.Callback) {
	fmt.Fprintf(w, "%s: slot %d, %s\n\n", c.Name, c.Slot, c.Interface)
	if c.Never() {
		field(w, "Comes", "never: the CLR does not issue it")
	} else {
		field(w, "Mode", fmt.Sprintf("%s by contract; seen: %s on .NET 9, %s on .NET 10", c.Contract,
			c.SeenMode(api.Net9), c.SeenMode(api.Net10)))
		if c.MayWait() {
			field(w, "Waiting", "does not hold up a collection; but see the locks")
		} else {
			field(w, "Waiting", "never: a collection or a suspension would wait for this thread; take no lock that a sampler holds over SuspendRuntime")
		}
		if c.Scope == "triggers" {
			field(w, "Methods", "all are allowed, except those for Initialize")
		} else {
			field(w, "Methods", "async and sync ones; those that may start a collection are refused (80131363)")
		}
		held := c.Held
		if held == "" {
			held = "none is known"
		}
		field(w, "Locks held", held)
	}
	field(w, "Delivered by", strings.Join(c.By, " or "))
	field(w, "Attached", c.Attach)
	field(w, "Notification", c.Notify)
	for _, s := range c.Says {
		field(w, "Note", s)
	}
}

func (c *Contract) printBit(w io.Writer) {
	b := c.Bit
	word := "low"
	if b.High {
		word = "high"
	}
	fmt.Fprintf(w, "%s: %#x of the %s word\n\n", b.Name, b.Value, word)
	delivers := strings.Join(c.Delivers, ", ")
	if delivers == "" {
		delivers = "no callback"
	}
	field(w, "Delivers", delivers)
	field(w, "Later", map[bool]string{true: "may change after Initialize",
		false: "Initialize only (E_FAIL)"}[b.Later])
	field(w, "Attached", map[bool]string{true: "yes", false: "no (E_FAIL or 8013136F)"}[b.Attach])
	field(w, "Notification", api.Meanings[fmt.Sprint("notification ", b.Notify)])
	for _, f := range b.From {
		field(w, "From "+f.Release.String(), f.Column+": "+f.Value)
	}
	for _, s := range b.Says {
		field(w, "Note", s)
	}
}

func (c *Contract) printResult(w io.Writer) {
	fmt.Fprintf(w, "%s: %08X\n\n", c.Result.Name, c.Result.Value)
	field(w, "Means", c.Result.Says)
	field(w, "Do", c.Result.Do)
	if len(c.Rows) == 0 {
		return
	}
	fmt.Fprintln(w, "\nDoStackSnapshot answers it by these rows of its decision table, which are tried in order:")
	for _, r := range c.Rows {
		field(w, "row "+r.Row, r.When)
	}
}

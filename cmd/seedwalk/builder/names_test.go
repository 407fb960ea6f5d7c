package builder

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr/api"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Every name that is listed is answered, in one screen: 100 columns, 40 lines.
func TestRulesAnswersEveryName(t *testing.T) {
	for _, name := range ruleNames() {
		c := lookUp(name)
		if c == nil {
			t.Errorf("%s is listed and not found", name)
			continue
		}
		var b strings.Builder
		c.print(&b)
		lines := strings.Split(b.String(), "\n")
		expect.True(t, len(lines) <= 40 && len(lines) >= 4, "%s: %d lines", name, len(lines))
		for _, l := range lines {
			expect.True(t, len(l) <= 100 && !strings.Contains(l, "%!"), "%s: %d columns: %s", name, len(l), l)
		}
	}
}

// What the tables refer to by `seedwalk rules NAME` is there.
func TestRulesReferTo(t *testing.T) {
	n := 0
	for _, r := range api.Load().Results {
		for _, part := range strings.Split(r.Says+r.Do, "`seedwalk rules ")[1:] {
			name, _, _ := strings.Cut(part, "`")
			if name != "METHOD" && lookUp(name) == nil {
				t.Errorf("%s refers to %q, which is nothing", r.Name, name)
			}
			n++
		}
	}
	expect.True(t, n >= 3, "%d references only", n)
}

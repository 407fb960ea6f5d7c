package golden

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The message quotes the first lines that differ, not the whole text.
func TestDifference(t *testing.T) {
	same := strings.Repeat("same\n", 500)
	for _, c := range []struct{ name, want, got, text string }{
		{"a line", same + "old\nend", same + "new\nend", "from line 501 on, want:\nold\nend\ngot:\nnew\nend"},
		{"a missing line", "a\nb", "a", "from line 2 on, want:\nb\ngot:\n"},
		{"a new line", "a", "a\nb", "from line 2 on, want:\n\ngot:\nb"},
	} {
		expect.Equal(t, difference(c.want, c.got), c.text, c.name)
	}
	for name, long := range map[string]string{"lines": same, "a line": strings.Repeat("x", 1<<20)} {
		if got := difference("", long); len(got) > 3000 || strings.Count(got, "\n") > 2*shownLines+3 {
			t.Errorf("%s: a message of %d bytes", name, len(got))
		}
	}
}

package hang

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{nil, nil},
		{[]string{"Task"}, []string{"Task"}},
		{[]string{"Task", "A", "B", "A"}, []string{"Task", "A", "B", "A"}},
		{[]string{"Task", "Task", "A", "B", "B", "B"}, []string{"Task (2 times)", "A", "B (3 times)"}},
	} {
		got := Fold(c.names)
		expect.True(t, slices.Equal(got, c.want), "%q: %q, want %q", c.names, got, c.want)
	}
	expect.Equal(t, (&Chain{Names: []string{"Task", "A", "A"}}).String(), "Task <- A (2 times)")
}

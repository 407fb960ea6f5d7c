package hang

import (
	"slices"
	"testing"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{nil, nil},
		{[]string{"Task"}, []string{"Task"}},
		{[]string{"Task", "A", "B", "A"}, []string{"Task", "A", "B", "A"}},
		{[]string{"Task", "Task", "A", "B", "B", "B"}, []string{"Task (2 times)", "A", "B (3 times)"}},
	} {
		if got := Fold(c.names); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
	}
	if s := (&Chain{Names: []string{"Task", "A", "A"}}).String(); s != "Task <- A (2 times)" {
		t.Error(s)
	}
}

package objects

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestJoinRegions(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want []memory.Range
	}{
		{"apart", []memory.Range{{Start: 30, End: 40}, {Start: 10, End: 20}},
			[]memory.Range{{Start: 10, End: 20}, {Start: 30, End: 40}}},
		{"adjacent", []memory.Range{{Start: 10, End: 20}, {Start: 20, End: 40}},
			[]memory.Range{{Start: 10, End: 20}, {Start: 20, End: 40}}},
		{"shared", []memory.Range{{Start: 10, End: 20}, {Start: 10, End: 24}, {Start: 10, End: 20}},
			[]memory.Range{{Start: 10, End: 24}}},
		{"inside", []memory.Range{{Start: 10, End: 40}, {Start: 20, End: 30}},
			[]memory.Range{{Start: 10, End: 40}}},
		{"none", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Slices(t, joinRegions(c.in), c.want)
		})
	}
}

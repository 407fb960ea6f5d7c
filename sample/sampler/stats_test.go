package sampler

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Time without samples belongs to dropped samples, each once, unless it may be chance.
func TestNoRoom(t *testing.T) {
	const period = 10
	e := &Base{Period: period}
	for _, c := range []struct {
		name                   string
		missing, dropped, want uint64
	}{
		{"nothing was dropped", 1000, 0, 0},
		{"few samples are missing", 99, 20, 0},
		{"all that is missing was dropped", 150, 20, 150},
		{"less was dropped than is missing", 1000, 20, 50},
		{"all drops are accounted for", 1000, 20, 0},
		{"more were dropped", 1000, 21, 10},
		{"the number is wrong", 1000, 5, 0},
	} {
		expect.Equal(t, e.NoRoom(c.missing, c.dropped), c.want, c.name)
	}
}

package outside

import (
	"testing"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// Time whose samples are missing is not distributed over other samples, unless the loss may be chance.
func TestMissed(t *testing.T) {
	const period = 10_000_000
	for name, c := range map[string]struct{ weighed, lost, located, want uint64 }{
		"all there":                      {100 * period, 0, 100 * period, 0},
		"more than there are":            {110 * period, 0, 100 * period, 0},
		"a few less":                     {91 * period, 0, 100 * period, 0},
		"few samples":                    {0, 0, 9 * period, 0},
		"none":                           {0, 0, 10 * period, 10 * period},
		"an eighth of many":              {875 * period, 0, 1000 * period, 125 * period},
		"less than an eighth of many":    {876 * period, 0, 1000 * period, 0},
		"kernel time that was not shown": {100 * period, 60 * period, 60 * period, 20 * period},
	} {
		e := &Engine{Base: sampler.Base{Period: period}}
		if got := e.missed(&threads.Task{Weighed: c.weighed, KernelLost: c.lost}, c.located); got != c.want {
			t.Errorf("%s: %d ms, want %d", name, got/1e6, c.want/1e6)
		}
	}
}

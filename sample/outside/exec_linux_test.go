package outside

import (
	"testing"

	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// After an exec, a real-time signal would end the new program. So the random clock sends none.
func TestDrawAfterExec(t *testing.T) {
	for _, c := range []struct {
		name   string
		legacy int
		exec   bool
		asked  uint64
	}{
		{"the same program", 0, false, 1},
		{"another program", 0, true, 0},
		{"another program, which ignores SIGURG", 23, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _, p, dir := asking(t)
			e.legacy, p.other = c.legacy, c.exec
			k := thread(t, dir, threads.Task{Armed: true})
			k.Stat, k.StateFile = contents(t, "1000000 5000000 7"), contents(t, "1 (thread) R 1")+1
			e.drawOne(k, 1)
			expect.True(t, e.Stats.Asked == c.asked && e.Stats.Unsent == 1-c.asked, "%d sent, %d not",
				e.Stats.Asked, e.Stats.Unsent)
		})
	}
}

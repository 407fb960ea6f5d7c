package report

import (
	"bufio"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestCounted(t *testing.T) {
	for n, want := range map[int64]string{0: "0 threads", 1: "1 thread",
		2: "2 threads", 1234: "1,234 threads"} {
		expect.Equal(t, counted(n, "thread"), want, n)
	}
}

// The text does not say that there are no waits below a line about idle waits.
func TestNoWaits(t *testing.T) {
	for idle, want := range []string{"no waits. A wait", "1 idle wait of the thread pool and of starting threads " +
		"not shown; use --idle to show them\nno other waits. A wait"} {
		a := &waits.Analysis{Names: waits.NewNames(), Requested: true, Waits: make([]waits.Wait, idle)}
		var out strings.Builder
		w := &textWriter{Writer: bufio.NewWriter(&out), a: a, name: newNames(a)}
		w.name.memo[stackAt{}] = []waits.Frame{{}} // an event without a stack
		w.waits()
		must.Do(t, w.Flush())
		expect.True(t, strings.HasPrefix(out.String(), want),
			"%d idle:\n%s\nwant %s", idle, out.String(), want)
	}
}

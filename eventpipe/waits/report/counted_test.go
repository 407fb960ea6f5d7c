package report

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int64]string{0: "0 threads", 1: "1 thread",
		2: "2 threads", 1234: "1,234 threads"} {
		if got := counted(n, "thread"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

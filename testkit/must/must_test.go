package must

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// ends is a test that keeps the arguments of Fatal.
type ends struct {
	testing.TB
	with any
}

func (e *ends) Helper() {}

func (e *ends) Fatal(args ...any) {
	e.with = args[0]
	runtime.Goexit()
}

func (e *ends) Fatalf(format string, args ...any) { e.Fatal(fmt.Sprintf(format, args...)) }

// run returns what f ends its test with, or nil.
func run(f func(t testing.TB)) any {
	e, done := &ends{}, make(chan bool)
	go func() {
		defer close(done)
		f(e)
	}()
	<-done
	return e.with
}

func TestEnds(t *testing.T) {
	some := errors.New("some error")
	for _, err := range []error{nil, some} {
		want, after := any(nil), 0
		if err != nil {
			want = err
		}
		if got := run(func(t testing.TB) { Do(t, err); after++ }); got != want {
			t.Errorf("Do(%v) ends with %v", err, got)
		}
		if got := run(func(t testing.TB) { after += Get(1, err)(t) }); got != want {
			t.Errorf("Get(1, %v) ends with %v", err, got)
		}
		if (after == 2) != (err == nil) {
			t.Errorf("%v: %d statements after it ran, as a number of those without an error", err, after)
		}
	}
}

func TestRun(t *testing.T) {
	if out := Run(t, exec.Command("go", "version")); !strings.HasPrefix(out, "go version") {
		t.Errorf("go version prints %q", out)
	}
	if got := run(func(t testing.TB) {
		Run(t,
			exec.Command("go", "no-such-command"))
	}); !strings.Contains(fmt.Sprint(got), "no-such-command") {
		t.Errorf("a command that fails ends the test with %v", got)
	}
}

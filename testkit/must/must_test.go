package must

import (
	"errors"
	"fmt"
	"github.com/seedwalk/seedwalk/testkit/expect"
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
		expect.Equal(t, run(func(t testing.TB) { Do(t, err); after++ }), want, "Do(%v) ends with", err)
		expect.Equal(t, run(func(t testing.TB) { after += Get(1, err)(t) }), want,
			"Get(1, %v) ends with", err)
		expect.Equal(t, after == 2, err == nil,
			"%v: %d statements after it ran, as a number of those without an error", err, after)
	}
}

func TestEqual(t *testing.T) {
	after := 0
	same := run(func(t testing.TB) {
		Equal(t, 1, 1)
		Slices(t, []int{1}, []int{1})
		True(t, true, "")
		after++
	})
	one := run(func(t testing.TB) { Equal(t, 1, 2, "one"); after++ })
	slice := run(func(t testing.TB) { Slices(t, []int{1}, nil, "slice"); after++ })
	no := run(func(t testing.TB) { True(t, false, "no %d", 1); after++ })
	if same != nil || one != "one: got 1, want 2" || slice != "slice: got [1], want []" ||
		no != "no 1" || after != 1 {
		t.Errorf("the tests end with %v, %v, %v, %v; %d ran on", same, one, slice, no, after)
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

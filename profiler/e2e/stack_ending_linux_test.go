package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// ended are the program's methods below an uncaught exception, leaf first.
var ended = []string{"Ending.Inner", "Ending.Inner", "Ending.Inner", "Ending.Inner", "Ending.Outer (lambda)", "Ending.Middle", "Ending.Outer"}

// ending are a thread's methods of the program's own.
func ending(th *shownThread) []string { return th.managed("Ending.") }

// A program that an exception is ending, in its own last handler: the handler is above the methods that have
// thrown.
func TestStackOfCrashing(t *testing.T) {
	p, _ := waiting(t, "handling", app(t, "Ending", "handled")...)
	l := stacks(t, p.id)
	want := append([]string{"Ending.Handler"}, ended...)
	i := slices.IndexFunc(l.Threads, func(th shownThread) bool { return slices.Equal(ending(&th), want) })
	if i < 0 || !l.Threads[i].Complete || len(l.Problems) > 0 {
		t.Errorf("no whole thread with %q: %+v, %v", want, l.Threads, l.Problems)
	}
}

// A program that only collects, with all of its threads stopped most of the time: whole stacks, and that of
// the collecting thread reaches into the collector.
func TestStackOfCollecting(t *testing.T) {
	p, _ := waiting(t, "collecting", app(t, "Ending", "collecting")...)
	threads, whole, inside, workers := 0, 0, 0, 0
	const looks = 12
	for range looks {
		l := stacks(t, p.id)
		threads, whole = threads+len(l.Threads), whole+l.whole(t)
		for i := range l.Threads {
			th := &l.Threads[i]
			switch m := ending(th); {
			case slices.Equal(m, []string{"Ending.Work"}):
				workers++
			case slices.Equal(m, []string{"Ending.Collecting", "Ending.Main"}):
				if k := slices.IndexFunc(th.Frames, func(f struct{ Kind, Name, Module, IP, SP string }) bool {
					return strings.HasPrefix(f.Name, "System.GC.Collect(")
				}); k > 4 {
					inside++ // with frames of the collector above it
				}
			case len(m) > 0:
				t.Errorf("thread %d: %q", th.TID, m)
			}
		}
	}
	t.Logf("%d looks: %d threads, %d whole, %d of the collector at work, %d of workers", looks, threads, whole, inside, workers)
	if inside < looks/2 || workers < 3*looks-6 || threads-whole > 1 {
		t.Error("not what the program does")
	}
}

// The core that the runtime itself has written of such a program. The default kind lacks the data about
// methods: the tool prints that and what to do, and native frames are there.
func TestStackOfMinidump(t *testing.T) {
	if _, err := os.Stat(filepath.Join(runtime9(t), "createdump")); err != nil {
		t.Skip("SKIPPED-CHECK: the runtime brings no createdump")
	}
	for _, c := range []struct {
		name, kind string
		full       bool
	}{{"full", "4", true}, {"heap", "2", false}} {
		t.Run(c.name, func(t *testing.T) {
			tempdir.Room(t, 2000)
			core := filepath.Join(tempdir.New(t), "core")
			env := []string{"DOTNET_DbgEnableMiniDump=1", "DOTNET_DbgMiniDumpType=" + c.kind, "DOTNET_DbgMiniDumpName=" + core}
			r := run(t, 2*time.Minute, env, app(t, "Ending", "unhandled")...)
			if _, err := os.Stat(core); err != nil {
				t.Skipf("SKIPPED-CHECK: createdump has written no core: %s", r.stdout+r.stderr)
			}
			l := stacks(t, "--core", core)
			whole := slices.ContainsFunc(l.Threads, func(th shownThread) bool { return th.Complete && slices.Equal(ending(&th), ended) })
			t.Logf("%d threads, problems %v", len(l.Threads), l.Problems)
			switch {
			case c.full && (!whole || len(l.Problems) > 0 || !l.Runtime):
				t.Errorf("no whole thread with %q: %+v", ended, l.Threads)
			case !c.full && !whole && (len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "DOTNET_DbgMiniDumpType=4") || len(l.Threads) < 5):
				t.Errorf("%v, %+v", l.Problems, l.Threads)
			}
		})
	}
}

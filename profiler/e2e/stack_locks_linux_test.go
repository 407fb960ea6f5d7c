package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// lockedThread is a waiting thread in stack --json.
type lockedThread struct {
	TID      uint32
	Name     string
	WaitsFor *struct {
		Kind, At string
		Owner    uint32
	} `json:"waits_for"`
}

type lockedProcess struct {
	Threads   []lockedThread
	Deadlocks [][]uint32
}

// waitFor is a wait in the deadlock of Waits.cs: the kind of lock, and its owner.
type waitFor struct{ kind, owner string }

// Every wait for a lock in a deadlocked program has its owner, and threads that wait for each other are
// marked. Threads that wait for anything else have neither. The same from a core.
func TestStackLocks(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		p, _ := waiting(t, "deadlocked", on(t, runtime, "Waits", "deadlock")...)
		judgeLocks(t, locksOf(t, p.id), runtime == needs.Net9) // 10 has no System.Threading.Lock here
		if runtime != needs.Net9 {                             // one core is enough
			return
		}
		p.freeze()
		judgeCore(t, locksOf(t, "--core", coreOf(t, p.id, "gcore")), locksOf(t, p.id))
	})
}

// The owners of monitors in a deadlocked program of .NET 8, and the verdict of hang.
func TestNet8Locks(t *testing.T) {
	of, _ := waiting(t, "deadlocked", on(t, needs.Net8, "Truth", "deadlock")...)
	h := hungAs(t, of.id, "deadlock", "") // its threads have reached their locks by then
	if h.kind() != "deadlock" {
		t.Errorf("hang says %+v", h.Verdicts)
	}
	p, owners, waiting := locksOf(t, of.id), map[uint32]int{}, 0
	for _, th := range p.Threads {
		if th.WaitsFor != nil && th.WaitsFor.Kind == "monitor" {
			waiting++
			owners[th.WaitsFor.Owner]++
		}
	}
	if waiting != 3 || len(owners) != 2 || owners[0] != 0 || len(p.Deadlocks) != 1 || len(p.Deadlocks[0]) != 2 {
		t.Errorf("%d threads wait for monitors of %v, deadlocks %v", waiting, owners, p.Deadlocks)
	}
}

func locksOf(t *testing.T, args ...string) (p lockedProcess) {
	t.Helper()
	seedwalkJSON(t, &p, "stack", args...)
	return p
}

// judgeLocks compares the waits with the names of the threads.
func judgeLocks(t *testing.T, p lockedProcess, slim bool) {
	t.Helper()
	names, got := map[uint32]string{}, map[string]waitFor{}
	for _, th := range p.Threads {
		names[th.TID] = th.Name
	}
	waits := []waitFor{}
	for _, th := range p.Threads {
		switch {
		case th.WaitsFor == nil:
		case th.Name == "waits":
			waits = append(waits, waitFor{th.WaitsFor.Kind, names[th.WaitsFor.Owner]})
		default:
			got[th.Name] = waitFor{th.WaitsFor.Kind, names[th.WaitsFor.Owner]}
		}
	}
	want := map[string]waitFor{
		"managed-1": {"monitor", "managed-2"}, "managed-2": {"monitor", "managed-1"},
		"native-1": {"pthread mutex", "native-2"}, "native-2": {"pthread mutex", "native-1"},
		"mixed-1": {"pthread mutex", "mixed-2"}, "mixed-2": {"monitor", "mixed-1"}, "left": {"monitor", "holder"},
	}
	if slim {
		want["slim-waits"] = waitFor{"System.Threading.Lock", "slim-holder"}
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %q, want %q", name, got[name], w)
		}
	}
	if len(got) != len(want) || !slices.Equal(waits, slices.Repeat([]waitFor{{"monitor", "holder"}}, 3)) {
		t.Errorf("waits of %v, and %v", got, waits)
	}
	var rings []string
	for _, ring := range p.Deadlocks {
		var of []string
		for _, tid := range ring {
			of = append(of, names[tid])
		}
		slices.Sort(of)
		rings = append(rings, strings.Join(of, " "))
	}
	slices.Sort(rings)
	if !slices.Equal(rings, []string{"managed-1 managed-2", "mixed-1 mixed-2", "native-1 native-2"}) {
		t.Errorf("deadlocks %q", rings)
	}
}

// judgeCore compares the waits in a core, which has no names of threads.
func judgeCore(t *testing.T, core, live lockedProcess) {
	t.Helper()
	if len(core.Threads) != len(live.Threads) {
		t.Errorf("%d threads in the core, %d live", len(core.Threads), len(live.Threads))
	}
	if len(live.Deadlocks) != 3 || fmt.Sprint(core.Deadlocks) != fmt.Sprint(live.Deadlocks) {
		t.Errorf("deadlocks in the core %v, live %v", core.Deadlocks, live.Deadlocks)
	}
	for _, th := range core.Threads {
		i := slices.IndexFunc(live.Threads, func(o lockedThread) bool { return o.TID == th.TID })
		if i < 0 || (th.WaitsFor == nil) != (live.Threads[i].WaitsFor == nil) || th.WaitsFor != nil && *th.WaitsFor != *live.Threads[i].WaitsFor {
			t.Errorf("thread %d: %+v in the core, %+v live", th.TID, th.WaitsFor, live.Threads[i].WaitsFor)
		}
	}
}

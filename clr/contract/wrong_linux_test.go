package contract

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// offsetsOf are the offsets of a layout by name.
func offsetsOf(l *layout) map[string]*uint64 {
	return map[string]*uint64{
		"mapTop":       &l.mapTop,
		"fragmentNext": &l.fragmentNext, "fragmentBegin": &l.fragmentBegin, "fragmentEnd": &l.fragmentEnd,
		"fragmentSection": &l.fragmentSection,
		"sectionBegin":    &l.sectionBegin, "sectionEnd": &l.sectionEnd,
		"sectionFlags": &l.sectionFlags, "sectionR2R": &l.sectionR2R,
		"sectionHeap": &l.sectionHeap, "sectionDeleted": &l.sectionDeleted,
		"heapMapBase": &l.heapMapBase, "heapHeaderMap": &l.heapHeaderMap,
		"headerMethod": &l.headerMethod, "headerCount": &l.headerCount, "headerInfos": &l.headerInfos,
		"stubLast": &l.stubLast,
	}
}

// harmless are the wrong layouts that some process cannot refute, because none of its data reads differently.
// All lookups test that too.
var harmless = []string{
	// Sections that are not being deleted have 0 in other fields too.
	"sectionDeleted by -8", "sectionDeleted by -4", "sectionDeleted by 4", "sectionDeleted by 16",
	// No block of stubs has a kind between the two limits; with -16 every header is a stub's, and only the
	// map is proven.
	"stubLast by -16", "stubLast by -8", "stubLast by -4", "stubLast by 4", "stubLast by 8", "stubLast by 16",
	// No leaf of the map has a second fragment.
	"fragmentNext by -4",
	nibbles10,
}

// nibbles10 is the .NET 10 form of the nibble map. If all methods are short, both forms find the same
// methods. Only the older form finds the kind of a long block of stubs.
const nibbles10 = "nibble map of .NET 10"

// TestWrongLayouts: among 103 wrong layouts, the tables of live processes prove none that gives a different
// answer to any lookup.
func TestWrongLayouts(t *testing.T) {
	asleep := func(t *testing.T) []string {
		return append(needs.Simple(t,
			needs.Net9, needs.Sleep), "600000")
	}
	for _, c := range []struct {
		name  string
		argv  func(t *testing.T) []string
		ready int // methods that must have been compiled
	}{
		{"Main asleep", asleep, 1},
		{"without precompiled code", func(t *testing.T) []string {
			return slices.Insert(asleep(t), 1, "DOTNET_ReadyToRun=0")
		}, 100},
		{"busy tiers", func(t *testing.T) []string {
			return []string{needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
				needs.File(t, "out", "samples", "Truth.exe"), "600"}
		}, 50},
		{"8.0.6", func(t *testing.T) []string {
			return []string{"/usr/bin/env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
				needs.File(t, "out", "samples", "Truth8"), "600"}
		}, 50},
		{"9.0.9 for musl", func(t *testing.T) []string {
			return []string{"/usr/bin/env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
				"LD_LIBRARY_PATH=" + needs.File(t, "out", "samples", "musl"),
				needs.File(t, "out", "samples", "TruthMusl"), "600"}
		}, 50},
	} {
		t.Run(c.name, func(t *testing.T) { testWrongLayouts(t, c.argv(t), c.ready) })
	}
}

func testWrongLayouts(t *testing.T, argv []string, ready int) {
	cmd := exec.Command(argv[0], argv[1:]...)
	must.Do(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	right, code := stopProven(t, cmd.Process.Pid, ready)
	tried, refused := 0, 0
	var believed []string
	try := func(name string, change func(t *Tables)) {
		wrong := *right
		wrong.proof = proof{dac: right.dac}
		wrong.cache, wrong.images = map[uint64]*located{}, map[uint64]directory{}
		change(&wrong)
		tried++
		e := wrong.collect()
		if e.contradicts() || e.parts() == 0 {
			refused++
			return
		}
		wrong.proven = e.parts()
		if differ := differs(right, &wrong, code, name); !slices.Contains(harmless, name) || differ != "" {
			t.Errorf("%s is believed: %+v; %s", name, e, differ)
		}
		believed = append(believed, name)
	}
	for name := range offsetsOf(new(layout)) {
		for _, by := range []int64{-16, -8, -4, 4, 8, 16} {
			try(fmt.Sprintf("%s by %d", name, by), func(t *Tables) {
				*offsetsOf(&t.l)[name] += uint64(by)
				if name == "mapTop" {
					t.top += uint64(by)
				}
			})
		}
	}
	try(nibbles10, func(t *Tables) { t.l.linear = false })
	slices.Sort(believed)
	expect.Figures(t, tried >= 100 && tried == refused+len(believed),
		"%d layouts: %d refused; believed, and harmless here: %s", tried, refused,
		strings.Join(believed, ", "))
}

// stopProven waits until a process's tables are proven and ready methods have been compiled, and stops the
// process. code are the addresses to look up.
func stopProven(t *testing.T, pid, ready int) (right *Tables, code []uint64) {
	t.Helper()
	mem := must.Get(live.OpenProcess(pid))(t)
	t.Cleanup(func() { mem.Close() })
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		maps := must.Get(live.Maps(pid))(t)
		if right = opened(mem, pid, maps); right == nil {
			continue
		}
		if right.Verify(); !right.Proven() {
			continue
		}
		syscall.Kill(pid, syscall.SIGSTOP)
		right.v.r = &forever{pages{r: mem, kept: map[uint64][]byte{}, most: maxPages}}
		clear(right.cache)
		var methods int
		if code, methods = lookups(right, maps); methods >= ready {
			e := right.collect()
			must.True(t, !e.contradicts() && e.parts()&partHeaps != 0,
				"the right layout is not believed: %+v", e)
			t.Logf("%d addresses of %d methods; %+v", len(code), methods, e)
			return right, code
		}
		syscall.Kill(pid, syscall.SIGCONT)
	}
	t.Fatal("the tables are not proven")
	return nil, nil
}

func opened(mem *live.Process, pid int, maps []live.Mapping) *Tables {
	table := live.NewLoader(pid).Table(maps)
	for i := range table.Len() {
		if m := table.At(i); m.ELF != nil {
			if tables, err := Open(mem, m.ELF, m.Bias); err == nil {
				return tables
			}
		}
	}
	return nil
}

// forever reads pages without a budget.
type forever struct{ pages }

func (f *forever) ReadAt(b []byte, addr uint64) bool {
	f.budget, f.reads = maxBudget, 0
	return f.pages.ReadAt(b, addr)
}

// lookups returns addresses of everything that is mapped as code, and the number of jitted methods there.
func lookups(tables *Tables, maps []live.Mapping) (code []uint64, methods int) {
	const step, most = 48, 1 << 14 // of one mapping
	seen := map[uint64]bool{}
	for i := range maps {
		m := &maps[i]
		if !m.Exec || m.Path != "" && !live.IsPE(m.Path) && !strings.Contains(m.Path, "doublemapper") {
			continue
		}
		by := max(step, (m.End-m.Start)/most)
		for ip := m.Start; ip < m.End; ip += by {
			code = append(code, ip)
			var at Method
			if tables.Find(ip, &at) == Found && at.Kind == JIT {
				seen[at.MethodDesc] = true
			}
		}
	}
	return code, len(seen)
}

// differs returns the name of a lookup with different results in two layouts, or "". An
// unverified lookup does not count; nor does a collectible section that is being deleted, if the wrong layout
// is about that.
func differs(a, b *Tables, code []uint64, name string) string {
	for _, ip := range code {
		var m, n Method
		ra, rb := a.Find(ip, &m), b.Find(ip, &n)
		switch {
		case name == nibbles10 && ra == Found && m.Kind == Stub && rb == NoMethod:
			continue
		case strings.HasPrefix(name, "sectionDeleted") && rb == NotCode:
			continue
		}
		if rb != Unproven && (ra != rb || ra == Found && m != n) {
			return fmt.Sprintf("%#x is %v %+v and %v %+v", ip, ra, m, rb, n)
		}
	}
	return ""
}

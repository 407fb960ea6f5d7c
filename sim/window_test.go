package sim_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/snapshot"
)

// inWindow are the packages that run while threads are suspended.
var inWindow = []string{"stack/snapshot", "stack/seed", "unwind", "unwind/amd64", "unwind/arm64", "context/memory"}

// A lock that is free cannot be seen by running the code that takes it, nor can
// a message that is not read. What they are made of must not be there.
func TestNoLocksNoLogs(t *testing.T) {
	forbidden := []string{"sync", "os", "log", "log/slog", "fmt", "time", "runtime", "syscall", "unsafe", "C"}
	args := []string{"list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}"}
	for _, dir := range inWindow {
		args = append(args, "../"+dir)
	}
	list, err := exec.Command("go", args...).Output() // it follows an overlay, as the compiler does
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) != len(inWindow) {
		t.Fatalf("%d packages, not %d:\n%s", len(lines), len(inWindow), list)
	}
	for _, line := range lines {
		name, imports, _ := strings.Cut(line, ":")
		for _, p := range strings.Fields(imports) {
			if slices.Contains(forbidden, p) {
				t.Errorf("%s imports %s: what it offers has no place in the suspended window", name, p)
			}
		}
	}
}

// Nothing is allocated between suspend and resume, nor by a merge: whatever the
// world that the sampler looks at.
func TestNoAllocation(t *testing.T) {
	all := recordings()
	tl := newTools()
	p := &replay{all: all}
	samplers := [2]*snapshot.ThreadSampler{snapshot.NewThreads(p, tl.seed[image.AMD64]), snapshot.NewThreads(p, tl.seed[image.ARM64])}
	for _, s := range samplers {
		if !s.Prime(make([]clr.Thread, 1)) {
			t.Fatal("not primed")
		}
	}
	out := make([]merge.Frame, 512)
	for i := range all {
		r := &all[i]
		p.next = i
		seeder, m := tl.use(r)
		s := samplers[r.w.Arch]
		var c clr.Capture
		for what, f := range map[string]func(){
			"a sample": func() { s.Sample(r.capture.Thread) },
			"a seed":   func() { c = r.capture; seeder.Seed(&c) },
			"a merge":  func() { m.Merge(&r.capture, out) },
		} {
			if n := testing.AllocsPerRun(2, f); n != 0 {
				t.Fatalf("%v, %v: %s allocates %v times", r.w.Variant, r.w.Arch, what, n)
			}
		}
	}
}

// The same of a round over all threads of a runtime.
func TestNoAllocationInRounds(t *testing.T) {
	p := &replay{all: recordings()}
	const slots = 8
	s := snapshot.New(p, slots)
	threads := make([]clr.Thread, slots)
	if n := testing.AllocsPerRun(10, func() { s.Round(threads) }); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

package peer

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// builtPeer compiles the peer or skips, counted.
func builtPeer(t *testing.T) string {
	t.Helper()
	p, err := BuildPeer(t.TempDir())
	if errors.Is(err, ErrAbsent) {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(t, err)
	return p
}

// held runs the peer over f and counts classes. No frame may differ where both
// sides had unwind data, but for those explained.
func held(t *testing.T, f *capture.File, want []Want,
	explained func(w *capture.Stack, i int, got []Frame, at int) Class) map[Class]int {
	t.Helper()
	program := builtPeer(t)
	path := filepath.Join(t.TempDir(), "walks")
	must.Do(t, f.Write(path))
	got, err := Run(program, path)
	must.True(t, err == nil && len(got) == len(f.Stacks),
		"%d of %d walks came back: %v", len(got), len(f.Stacks), err)
	sum, frames := map[Class]int{}, 0
	for i := range f.Stacks {
		w := &f.Stacks[i]
		c, at := Compare(want[i], got[i])
		if c == Differs {
			if e := explained(w, i, got[i], at); e != "" {
				c = e
			}
		}
		if sum[c]++; c == Differs {
			t.Errorf("%s", Describe(f, w, want[i], got[i], at))
		} else if c != Equal && sum[c] <= 2 {
			t.Logf("%s: %s", c, Describe(f, w, want[i], got[i], at))
		}
		frames += len(want[i].Frames)
	}
	for c, n := range sum {
		t.Logf("%6d of %d walks: %s", n, len(f.Stacks), c)
	}
	t.Logf("%d frames in all", frames)
	expect.True(t, sum[Equal] != 0, "no walk is equal: is the peer given what it needs?")
	return sum
}

// hijacked explains a frame where the CLR's call frame information is wrong, which we know and libunwind
// cannot. In the hijack stub it is a word off, so our frame is a word lower than the peer's. In the function
// that continues after a catch block it names the wrong register.
func hijacked(f *capture.File, want []Want) func(*capture.Stack, int, []Frame, int) Class {
	walkers := make([]*amd64.Unwinder, len(f.Sets))
	return func(w *capture.Stack, i int, got []Frame, at int) Class {
		if walkers[w.Set] == nil {
			walkers[w.Set] = managed.NewAMD64()
			walkers[w.Set].SetTable(f.Table(w.Set))
		}
		if at > 0 && got[at].SP == want[i].Frames[at].SP+8 &&
			walkers[w.Set].InReturnHook(unwind.ReturnAddress(got[at-1].IP)) {
			return HijackStub
		}
		if at > 0 && inRestore(walkers[w.Set].Table(), got[at-1].IP) {
			return Restore
		}
		return ""
	}
}

// inRestore reports whether an address is in the part of managed.FindRestore.
func inRestore(t *module.Table, ip uint64) bool {
	i := t.Find(ip)
	if i < 0 {
		return false
	}
	m := t.At(i)
	r := managed.FindRestore(m, m.Bytes(m.Start, int(m.End-m.Start)))
	return r.Start <= ip && ip < r.End
}

func unexplained(*capture.Stack, int, []Frame, int) Class { return "" }

// The peer against recorded leaf blocks of real processes.
func TestRawSamples(t *testing.T) {
	files, err := RawFiles(t.TempDir())
	if errors.Is(err, ErrNoSamples) {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(t, err)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, want, err := FromRaw(path, 5000)
			must.Do(t, err)
			held(t, f, want, hijacked(f, want))
		})
	}
}

// The peer against single-stepped truth, as far as unwind data gives it: what
// it gets wrong here is its own fault.
func TestSnapshots(t *testing.T) {
	f, want, err := FromSnapshots(t.TempDir())
	if errors.Is(err, snap.ErrAbsent) {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(t, err)
	for i := range f.Stacks {
		f.Stacks[i].Limit = len(want[i].Frames)
	}
	held(t, f, want, unexplained)
}

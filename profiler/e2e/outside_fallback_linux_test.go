package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Symbols of a CLR: published is the description of its structures. debuggers is the table for debuggers; if
// a runtime does not publish a description, the layout is guessed from this table and then proven.
const published, debuggers = "DotNetRuntimeContractDescriptor", "g_dacTable"

// mutedRuntime returns the pinned .NET 9 with a CLR that does not export these names.
func mutedRuntime(t *testing.T, names ...string) string {
	t.Helper()
	return changedRuntime(t, func(b []byte) []byte {
		for _, name := range names {
			if !bytes.Contains(b, []byte(name)) {
				t.Fatalf("the CLR has no %s to hide", name)
			}
			b = bytes.ReplaceAll(b, []byte(name), []byte(strings.ToLower(name)))
		}
		return b
	})
}

// disguisedRuntime returns the pinned .NET 9 with a CLR that publishes no description, and whose table
// for debuggers has the size of .NET 8's: the layout known for that release is wrong here.
func disguisedRuntime(t *testing.T) string {
	t.Helper()
	return changedRuntime(t, func(b []byte) []byte {
		const size9, size8 = 158 * 8, 156 * 8
		f := must.Get(elf.NewFile(bytes.NewReader(b)))(t)
		symbols := must.Get(f.DynamicSymbols())(t)
		i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == debuggers && s.Size == size9 })
		if i < 0 {
			t.Fatalf("the CLR has no %s of %d bytes", debuggers, size9)
		}
		const entry, size = 24, 16 // of a symbol; DynamicSymbols omits the first
		at := f.Section(".dynsym").Offset + uint64(entry*(i+1)+size)
		binary.LittleEndian.PutUint64(b[at:], size8)
		return bytes.ReplaceAll(b, []byte(published), []byte(strings.ToLower(published)))
	})
}

// changedRuntime returns a copy of the pinned .NET 9 with a changed CLR.
func changedRuntime(t *testing.T, change func(clr []byte) []byte) string {
	t.Helper()
	from, to := runtime9(t), tempdir.New(t)
	entries := must.Get(os.ReadDir(from))(t)
	for _, e := range entries {
		if e.Name() == "libcoreclr.so" {
			continue
		}
		must.Do(t, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
	must.Do(t, os.WriteFile(filepath.Join(to, "libcoreclr.so"), change([]byte(readFile(t, filepath.Join(from, "libcoreclr.so")))), 0o755))
	return to
}

// A runtime that cannot be sampled from outside is sampled in snapshot mode, in the same recording, and
// the summary reports it. A runtime without a description, whose layout can be proven from the running
// code, is sampled by the probe.
func TestProbeFallsBack(t *testing.T) {
	for _, c := range []struct {
		name, way string
		hidden    []string
		says      string
	}{
		{"nothing to prove", "snapshot", []string{published, debuggers}, "the structures of its runtime are not known"},
		{"proven", "probe", []string{published}, "never suspended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := fallback(t, mutedRuntime(t, c.hidden...))
			if c.way == "probe" && r.Samples < 20 { // in one of twenty runs, on a busy machine
				t.Logf("only %d samples; once more", r.Samples)
				r = fallback(t, mutedRuntime(t, c.hidden...))
			}
			r.whole(t, 20, 900)
			if r.code != 0 || r.Way != c.way {
				t.Errorf("code %d, %+v", r.code, r.Figures)
			}
			biased := strings.Contains(r.stderr, "biased to safe points")
			if !strings.Contains(r.WayWhy, c.says) || biased != (c.way == "snapshot") || !r.has("Demo.Recursion") {
				t.Errorf("it says %q; or there are no names", r.WayWhy)
			}
		})
	}
}

// A runtime whose tables refute the layout known for its release: stacks have their native frames, the gap
// has its own type, and recording, stack, and doctor print the reason.
func TestUnprovenRuntime(t *testing.T) {
	const gap, why = "runtime-not-readable", "contradict the layout that is known for its release"
	runtime := disguisedRuntime(t)
	r := fallback(t, runtime)
	if r.code != 0 || r.Way != "probe" || r.Samples < 20 || r.Gaps[gap] == 0 || r.Complete == 0 {
		t.Errorf("code %d, %+v", r.code, r.Figures)
	}
	if !strings.Contains(r.stderr, "samples end at managed code: the runtime's tables cannot be read") || r.has("Demo.Recursion") {
		t.Errorf("it says:\n%s", r.stderr)
	}
	pid := attached(t, need(t, "out", "bin", "swhost"), runtime, need(t, "out", "samples", "Demo.exe"), "600000").id
	if r := seedwalk(t, "stack", pid); r.code != 0 || !strings.Contains(r.stdout, gap) {
		t.Errorf("stack: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := seedwalk(t, "doctor", "--pid", pid); !strings.Contains(r.stdout, why) {
		t.Errorf("doctor: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// fallback records a program on a changed CLR.
func fallback(t *testing.T, runtime string) *recording {
	t.Helper()
	r := record(t, "", need(t, "out", "bin", "swhost"), runtime, need(t, "out", "samples", "Demo.exe"), "4")
	t.Log("\n" + r.stderr)
	return r
}

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// ownRuntime is a folder with the runtime and the truth program; the named libraries are separate copies.
func ownRuntime(t *testing.T, copied ...string) (dir string) {
	t.Helper()
	dir = tempdir.New(t)
	from, _ := filepath.Glob(filepath.Join(runtime9(t), "*"))
	for _, name := range []string{"Truth.exe", "libtruth.so"} {
		from = append(from, need(t, "out", "samples", name))
	}
	for _, f := range from {
		name := filepath.Base(f)
		f, _ = filepath.Abs(f)
		if name != "Truth.exe" && !slices.Contains(copied, name) {
			os.Symlink(f, filepath.Join(dir, name))
			continue
		}
		b, err := os.ReadFile(f)
		must.True(t, err == nil && os.WriteFile(filepath.Join(dir, name), b, 0o755) == nil, "%v", err)
	}
	return dir
}

// The runtime and a library are replaced on disk while they run, as by an upgrade of their packages. The
// stacks of record, record --outside, and stack still agree with the threads' own records. The tool opens the
// mapped files by the kernel's names for them (/proc/PID/map_files), which needs a privilege. Without it, the
// tool reads the mapped memory.
func TestReplacedLibraries(t *testing.T) {
	plain, err := exec.LookPath("setpriv")
	for _, c := range []struct {
		name    string
		without []string // removes the privilege
	}{{"mapped files", nil}, {"memory", []string{plain, "--bounding-set=-all", "--inh-caps=-all", "--"}}} {
		t.Run(c.name, func(t *testing.T) {
			switch {
			case c.without == nil && os.Geteuid() != 0:
				t.Skip("SKIPPED-CHECK: only root may open files by their mappings")
			case c.without != nil && err != nil:
				t.Skip("SKIPPED-CHECK: no setpriv (Debian package util-linux)")
			}
			replaced := []string{"libcoreclr.so", "libtruth.so"}
			dir := ownRuntime(t, replaced...)
			p := attached(t, append(c.without, need(t, "out", "bin", "swhost"), dir,
				filepath.Join(dir, "Truth.exe"), "120")...)
			for _, name := range replaced { // a new file is renamed over the old; the mapped one remains
				other := filepath.Join(dir, "new")
				must.True(t, os.WriteFile(other, []byte("\x7fELF and nothing like it"), 0o755) == nil &&
					os.Rename(other, filepath.Join(dir, name)) == nil, "not replaced")
			}
			b := readFile(t, "/proc/"+p.id+"/maps")
			must.True(t, strings.Contains(b, "libcoreclr.so (deleted)") &&
				strings.Contains(b, "libtruth.so (deleted)"), "nothing is deleted in the mappings")
			r := run(t, time.Minute, nil, append(slices.Clone(c.without), tool(t), "stack", p.id)...)
			expect.True(t, r.code == 0 && strings.Count(r.stdout, "T.Run") >= 10 &&
				strings.Count(r.stdout, "the rest is missing") <= 1,
				"stack: %d\n%s%s", r.code, r.stderr, r.stdout)
			for flag, copied := range map[string]int{"": 0, " --outside": perfevent.MaxStack} {
				r := recordRawBy(t, c.without, "--rate 100 --duration 2s --pid "+p.id+flag)
				r.ok(t)
				k := newChecker(t)
				k.copied = copied
				k.recorded(t, r)
				k.few(t, 60, 97)
			}
			expect.True(t, len(standing(t, p.pid)) == 0 && p.out.String() == "",
				"threads are stopped, or the program printed %q", p.out.String())
		})
	}
}

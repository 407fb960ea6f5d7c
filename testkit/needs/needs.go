// Package needs finds what tests of real runtimes need: fetched and built files, compilers, programs. If it
// is missing, the test is skipped with a reason, which the test command counts and prints.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/bundle"
	"github.com/seedwalk/seedwalk/testkit/moduleroot"
)

// File is the path, relative to the module's root, of a file that is not committed: a runtime, or a build
// result.
func File(t testing.TB, elem ...string) string {
	t.Helper()
	p := filepath.Join(append([]string{Root(t)}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("SKIPPED-CHECK: %s is missing; run make build samples runtime", filepath.Join(elem...))
	}
	return p
}

// Root is the module's root.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := moduleroot.Find()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Command skips a test that lacks one of the commands.
func Command(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED-CHECK: no %s; run scripts/deps.sh", name)
		}
	}
}

// Runtime9 is the folder of the pinned .NET 9 for Linux.
func Runtime9(t testing.TB) string {
	t.Helper()
	return filepath.Dir(File(t, ".cache", "dotnet-9.0.5", "package", "dist", "libcoreclr.so"))
}

// Build runs a compiler; if it fails, so does the test.
func Build(t testing.TB, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

// SingleFile replaces a single-file program's own assembly, app, by a compiled C# source, and writes the
// program to out. The source is compiled against what is left of the program's System.Private.CoreLib, with
// further flags of the compiler.
func SingleFile(t testing.TB, program, app, out, code string, flags ...string) {
	t.Helper()
	const core = "System.Private.CoreLib.dll"
	data, err := os.ReadFile(program)
	check(t, err)
	b, err := bundle.Read(data, program)
	check(t, err)
	e, err := b.Find(core)
	check(t, err)
	content, err := b.Bytes(e)
	check(t, err)
	bin := t.TempDir()
	lib, own := filepath.Join(bin, core), filepath.Join(bin, app)
	check(t, os.WriteFile(lib, content, 0o600))
	Build(t, append([]string{"mcs", "-optimize+", "-nologo", "-nostdlib", "-noconfig", "-warn:1", "-r:" + lib, "-out:" + own, code}, flags...)...)
	e, err = b.Find(app)
	check(t, err)
	content, err = os.ReadFile(own)
	check(t, err)
	check(t, b.Replace(e, content))
	check(t, os.WriteFile(out, b.Data, 0o700))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

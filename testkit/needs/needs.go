// Package needs finds what tests of real runtimes need: fetched and built files, compilers, programs. If it
// is missing, the test is skipped with a reason, which the test command counts and prints.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/bundle"
	"github.com/seedwalk/seedwalk/testkit/moduleroot"
	"github.com/seedwalk/seedwalk/testkit/must"
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
	return must.Get(moduleroot.Find())(t)
}

// Command skips a test that lacks one of the commands, and returns the path of the last.
func Command(t testing.TB, names ...string) (path string) {
	t.Helper()
	for _, name := range names {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED-CHECK: no %s here (%s); scripts/deps.sh has the packages of Debian", name,
				runtime.GOOS)
		}
	}
	return path
}

// Runtime9 is the folder of the pinned .NET 9 for Linux.
func Runtime9(t testing.TB) string {
	t.Helper()
	return filepath.Dir(File(t, ".cache", "dotnet-9.0.5", "package", "dist", "libcoreclr.so"))
}

// Build runs a compiler; if it fails, so does the test.
func Build(t testing.TB, argv ...string) {
	t.Helper()
	must.Run(t, exec.Command(argv[0], argv[1:]...))
}

// SingleFile replaces a single-file program's own assembly, app, by a compiled C# source, and writes the
// program to out. The source is compiled against what is left of the program's System.Private.CoreLib, with
// further flags of the compiler.
func SingleFile(t testing.TB, program, app, out, code string, flags ...string) {
	t.Helper()
	const core = "System.Private.CoreLib.dll"
	b := must.Get(bundle.Read(must.Get(os.ReadFile(program))(t), program))(t)
	content := must.Get(b.Bytes(must.Get(b.Find(core))(t)))(t)
	bin := t.TempDir()
	lib, own := filepath.Join(bin, core), filepath.Join(bin, app)
	must.Do(t, os.WriteFile(lib, content, 0o600))
	Build(t, append([]string{"mcs", "-optimize+", "-nologo", "-nostdlib", "-noconfig", "-warn:1", "-r:" + lib,
		"-out:" + own, code}, flags...)...)
	must.Do(t, b.Replace(must.Get(b.Find(app))(t), must.Get(os.ReadFile(own))(t)))
	must.Do(t, os.WriteFile(out, b.Data, 0o700))
}

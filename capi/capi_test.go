package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const want = `walk: frames, stop end-of-stack, gap none
merge: frames, stop none, gap none
a closed handle: -1, null: -2
`

// The example is built against the library as a profiler's author would, as a
// shared library and as an archive, and run.
func TestExample(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gcc")
	}
	for _, mode := range []struct{ name, file string }{{"c-shared", "libseedwalk.so"}, {"c-archive", "libseedwalk.a"}} {
		t.Run(mode.name, func(t *testing.T) {
			dir := t.TempDir()
			lib, exe := filepath.Join(dir, mode.file), filepath.Join(dir, "example")
			do(t, "go", "build", "-buildmode="+mode.name, "-o", lib, ".")
			do(t, gcc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe, "testdata/example.c", lib, "-lpthread", "-Wl,-rpath,"+dir)
			if got := do(t, exe); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// A C++ compiler must take the header too.
func TestHeaderInCPlusPlus(t *testing.T) {
	gxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no g++")
	}
	src := filepath.Join(t.TempDir(), "a.cc")
	if err := os.WriteFile(src, []byte("#include \"seedwalk.h\"\nint f(seedwalk_handle h) { return seedwalk_commit(h); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	do(t, gxx, "-Wall", "-Wextra", "-Werror", "-I.", "-c", src, "-o", os.DevNull)
}

func do(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

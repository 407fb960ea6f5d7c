package needs

import (
	"path/filepath"
	"testing"
)

// The simplest programs (profiler/testdata/Simple.cs): what Main does.
const (
	Loop   = "LOOP"   // a hot loop
	Sleep  = "SLEEP"  // Thread.Sleep
	Native = "NATIVE" // a P/Invoke that computes
	Fiber  = "FIBER"  // a P/Invoke that computes on a stack of its own; not on musl, which has no ucontext
)

// The runtimes of Simple.
const (
	Net8     = "8.0.6"
	Net9     = "9.0.5"
	Net9Musl = "9.0.9 musl"
	Net10    = "10.0.9"
)

// Simple builds the simplest program of a kind for a runtime. The returned command line lacks its last
// argument: the duration of Main in milliseconds.
func Simple(t testing.TB, runtime, kind string) []string {
	t.Helper()
	Command(t, "mcs", "gcc")
	dir := t.TempDir()
	source := func(name string) string { return filepath.Join(Root(t), "profiler", "testdata", name) }
	gcc := "gcc"
	env := []string{"/usr/bin/env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "LD_LIBRARY_PATH=" + dir}
	single := func(app string, program ...string) []string {
		out := filepath.Join(dir, "simple")
		SingleFile(t, File(t, program...), app, out, source("Simple.cs"), "-define:"+kind)
		return append(env, out)
	}
	var argv []string
	switch runtime {
	case Net8:
		argv = single("vsce-sign.dll", "out", "samples", "Truth8")
	case Net9:
		out := filepath.Join(dir, "Simple.exe")
		Build(t, "mcs", "-optimize+", "-nologo", "-warn:1", "-define:"+kind, "-out:"+out, source("Simple.cs"))
		argv = append(env, File(t, "out", "bin", "swhost"), Runtime9(t), out)
	case Net9Musl:
		Command(t, "musl-gcc")
		gcc = "musl-gcc"
		env[2] += ":" + File(t, "out", "samples", "musl")
		argv = single("vsce-sign.dll", "out", "samples", "TruthMusl")
	case Net10:
		argv = single("azmcp.dll", "out", "samples", "Truth10")
	default:
		t.Fatalf("no runtime %q", runtime)
	}
	if kind == Native || kind == Fiber {
		Build(t, gcc, "-O2", "-g", "-shared", "-fPIC", "-D"+kind, "-o",
			filepath.Join(dir, "libsimple.so"), source("simple.c"))
	}
	return argv
}

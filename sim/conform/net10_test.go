package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/bundle"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// singleFile puts a C# source in the place of a single-file program's own assembly,
// app, and writes the program to out. It is compiled against what is left of the
// program's System.Private.CoreLib.
func singleFile(t *testing.T, program, app, out, code string) {
	t.Helper()
	const core = "System.Private.CoreLib.dll"
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(data, program)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	lib, own := filepath.Join(bin, core), filepath.Join(bin, app)
	if err := os.WriteFile(lib, file(t, b, core), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, "mcs", "-optimize+", "-nologo", "-nostdlib", "-noconfig", "-warn:1", "-r:"+lib, "-out:"+own, code)
	e, err := b.Find(app)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Replace(e, content); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, b.Data, 0o700); err != nil {
		t.Fatal(err)
	}
}

// file is the content of one file of a bundle.
func file(t *testing.T, b *bundle.Bundle, path string) []byte {
	t.Helper()
	e, err := b.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := b.Bytes(e)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// The script on .NET 10, which exists as a single-file program, and on the
// simulated CLR.
func TestConformNet10Linux(t *testing.T) {
	needCommand(t, "gcc")
	needCommand(t, "mcs")
	azmcp := need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	bin := t.TempDir()
	program, lib := filepath.Join(bin, "conform"), filepath.Join(bin, "libconform.so")
	singleFile(t, azmcp, "azmcp.dll", program, source("Conform.cs"))
	build(t, "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", lib, source("conform.c"), "-lpthread")
	conformance(t, real{vm.Net10Linux, func(t *testing.T, run Run, dir string, env []string) string {
		var args []string
		if run.Mode != "" {
			args = append(args, run.Mode)
		}
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), append(env, "CORECLR_PROFILER_PATH="+lib, "LD_LIBRARY_PATH="+bin,
			"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
			"CONFORM_SCRIPT="+filepath.Join(dir, "script"), "CONFORM_OUT="+filepath.Join(dir, "out"))...)
		return finish(t, run, cmd, dir)
	}})
}

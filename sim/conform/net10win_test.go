package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/internal/bundle"
	"github.com/seedwalk/seedwalk/sim/vm"
)

func init() {
	explained[vm.Net10Windows] = map[string]string{
		"initialize.resume":    started,
		"collector.zero":       forbid,
		"collecting.collector": forbid,
		"collector.suspend":    inside,
		"suspended.suspend":    again,
	}
}

// The script on .NET 10 of Windows, which is had as a single-file program only:
// Conform.cs is compiled against that program's library and put in the place of
// its own assembly.
func TestConformNet10Windows(t *testing.T) {
	const cc, assembly = "x86_64-w64-mingw32-gcc", "azmcp.dll"
	needCommand(t, cc)
	needCommand(t, "mcs")
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	wine := need(t, "scripts", "wine.sh")
	single := need(t, ".cache", "dotnet-10.0.9-win", "package", "dist", "azmcp.exe")
	bin := t.TempDir()
	lib, library, app := filepath.Join(bin, "conform.dll"), filepath.Join(bin, "System.Private.CoreLib.dll"), filepath.Join(bin, "Conform.exe")
	build(t, cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-o", lib, source("conform_windows.c"))
	b := open(t, single)
	put(t, library, content(t, b, filepath.Base(library)))
	build(t, "mcs", "-optimize+", "-nologo", "-warn:1", "-nostdlib", "-noconfig", "-r:"+library, "-out:"+filepath.Join(bin, assembly), source("Conform.cs"))
	replace(t, b, assembly, filepath.Join(bin, assembly))
	put(t, app, b.Data)
	conformance(t, vm.Net10Windows, Script(vm.Net10Windows), func(t *testing.T, run Run, dir string, env []string) string {
		args := []string{"exec", app}
		if run.Mode != "" {
			args = append(args, run.Mode)
		}
		cmd := exec.Command(wine, args...)
		if run.Dies {
			env = append(env, "WINEDEBUG=-all,err+eventlog") // why it dies; a Unix exit code has 8 bits
		}
		cmd.Env = append(os.Environ(), append(env, "CORECLR_PROFILER_PATH="+winePath(lib), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
			"CONFORM_SCRIPT="+winePath(filepath.Join(dir, "script")), "CONFORM_OUT="+winePath(filepath.Join(dir, "out")))...)
		return finish(t, run, cmd, dir)
	})
}

func open(t *testing.T, path string) *bundle.Bundle {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(data, path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// content is a file of the bundle.
func content(t *testing.T, b *bundle.Bundle, name string) []byte {
	t.Helper()
	e, err := b.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.Bytes(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// replace puts the file path in the place of the bundle's file name.
func replace(t *testing.T, b *bundle.Bundle, name, path string) {
	t.Helper()
	e, err := b.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Replace(e, data); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
}

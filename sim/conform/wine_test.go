package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

const mingw = "x86_64-w64-mingw32-gcc"

// needWine is the script that runs Windows programs.
func needWine(t *testing.T) string {
	t.Helper()
	needs.Command(t, mingw)
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	return needs.File(t, "scripts", "wine.sh")
}

// winePath is a file as Windows programs under Wine name it.
func winePath(p string) string { return "Z:" + strings.ReplaceAll(p, "/", `\`) }

// windowsProfiler builds the profiler that makes the calls, as conform.dll in bin:
// the program's P/Invokes look for it there.
func windowsProfiler(t *testing.T, bin string, flags ...string) string {
	t.Helper()
	lib := filepath.Join(bin, "conform.dll")
	needs.Build(t, append([]string{mingw, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-o", lib, source("conform_windows.c")}, flags...)...)
	return lib
}

// underWine runs cmd, a program under Wine with the profiler lib, to its end.
func underWine(t *testing.T, run Run, cmd *exec.Cmd, dir, lib string, env []string) (fate string) {
	t.Helper()
	if run.Dies {
		env = append(env, "WINEDEBUG=-all,err+eventlog") // why it dies; a Unix exit code has 8 bits
	}
	if run == trap {
		env = append(env, "CONFORM_TRAP=1")
	}
	cmd.Env = append(os.Environ(), append(env, "CORECLR_PROFILER_PATH="+winePath(lib),
		"CONFORM_SCRIPT="+winePath(filepath.Join(dir, "script")), "CONFORM_OUT="+winePath(filepath.Join(dir, "out")))...)
	return finish(t, run, cmd, dir)
}

// The script on .NET Core 2.0 and 2.2 of Windows and on the simulated CLR, which
// knows no difference between the two.
func TestConformCore2Windows(t *testing.T) {
	wine := needWine(t)
	needs.Command(t, "mcs")
	bin := t.TempDir()
	host, app := filepath.Join(bin, "swhost.exe"), filepath.Join(bin, "Conform.exe")
	lib := windowsProfiler(t, bin)
	needs.Build(t, mingw, "-O2", "-Wall", "-Wextra", "-Werror", "-o", host, source("host_windows.c"))
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-warn:1", "-out:"+app, source("Conform.cs"))
	for _, version := range []string{"2.0.0", "2.2.2"} {
		t.Run(version, func(t *testing.T) {
			runtime := filepath.Dir(needs.File(t, ".cache", "dotnet-"+version+"-win", "package", "shared", "Microsoft.NETCore.App", version, "coreclr.dll"))
			conformance(t, real{vm.Core22Windows, func(t *testing.T, run Run, dir string, env []string) string {
				args := []string{"exec", host, winePath(runtime), winePath(app)}
				if run.Mode != "" {
					args = append(args, run.Mode)
				}
				return underWine(t, run, exec.Command(wine, args...), dir, lib, env)
			}})
		})
	}
}

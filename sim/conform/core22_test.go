package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/vm"
)

func init() {
	const funclet = "vm knows no funclets: what lies between a handler's and the frame it belongs to has been unwound, and is skipped with its marker (rule j)"
	explained[vm.Core22Windows] = map[string]string{
		"collector.zero":       forbid,
		"collecting.collector": forbid,
		"sampler.finally":      funclet,
		"held.finally":         funclet,
		"sampler.catch":        funclet,
		"held.catch":           funclet,
	}
}

// winePath is a file as Windows programs under Wine name it.
func winePath(p string) string { return "Z:" + strings.ReplaceAll(p, "/", `\`) }

// The script on .NET Core 2.2.2 of Windows and on the simulated CLR.
func TestConformCore22Windows(t *testing.T) {
	const cc = "x86_64-w64-mingw32-gcc"
	needCommand(t, cc)
	needCommand(t, "mcs")
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	wine := need(t, "scripts", "wine.sh")
	runtime := filepath.Dir(need(t, ".cache", "dotnet-2.2.2-win", "package", "shared", "Microsoft.NETCore.App", "2.2.2", "coreclr.dll"))
	bin := t.TempDir()
	host, lib, app := filepath.Join(bin, "swhost.exe"), filepath.Join(bin, "conform.dll"), filepath.Join(bin, "Conform.exe")
	build(t, cc, "-O2", "-Wall", "-Wextra", "-Werror", "-o", host, source("host_windows.c"))
	build(t, cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-o", lib, source("conform_windows.c"))
	build(t, "mcs", "-optimize+", "-nologo", "-warn:1", "-out:"+app, source("Conform.cs"))
	conformance(t, vm.Core22Windows, Script(vm.Core22Windows), func(t *testing.T, run Run, dir string, env []string) string {
		args := []string{"exec", host, winePath(runtime), winePath(app)}
		if run.Mode != "" {
			args = append(args, run.Mode)
		}
		cmd := exec.Command(wine, args...)
		if run.Dies {
			env = append(env, "WINEDEBUG=-all,err+eventlog") // why it dies; a Unix exit code has 8 bits
		}
		cmd.Env = append(os.Environ(), append(env, "CORECLR_PROFILER_PATH="+winePath(lib),
			"CONFORM_SCRIPT="+winePath(filepath.Join(dir, "script")), "CONFORM_OUT="+winePath(filepath.Join(dir, "out")))...)
		return finish(t, run, cmd, dir)
	})
}

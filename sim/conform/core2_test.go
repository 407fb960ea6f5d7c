package conform

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

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

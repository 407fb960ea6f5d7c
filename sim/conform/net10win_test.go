package conform

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The script on .NET 10 of Windows, which is published as a single-file program only.
func TestConformNet10Windows(t *testing.T) {
	wine := needWine(t)
	needs.Command(t, "mcs")
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9-win", "package", "dist", "azmcp.exe")
	bin := t.TempDir()
	program := filepath.Join(bin, "Conform.exe")
	lib := windowsProfiler(t, bin)
	needs.SingleFile(t, azmcp, "azmcp.dll", program, source("Conform.cs"))
	conformance(t, real{vm.Net10Windows, func(t *testing.T, run Run, dir string, env []string) string {
		args := []string{"exec", program}
		if run.Mode != "" {
			args = append(args, run.Mode)
		}
		env = append(env, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
		return underWine(t, run, exec.Command(wine, args...), dir, lib, env)
	}})
}

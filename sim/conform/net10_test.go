package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The script on .NET 10, which exists as a single-file program, and on the
// simulated CLR.
func TestConformNet10Linux(t *testing.T) {
	needs.Command(t, "gcc", "mcs")
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	bin := t.TempDir()
	program, lib := filepath.Join(bin, "conform"), filepath.Join(bin, "libconform.so")
	needs.SingleFile(t, azmcp, "azmcp.dll", program, source("Conform.cs"))
	needs.Build(t, "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", lib, source("conform.c"), "-lpthread")
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

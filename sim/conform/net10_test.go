package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/sim/vm"
)

func init() {
	explained[vm.Net10Linux] = map[string]string{
		"initialize.resume": started,
	}
}

// alone are the cases that need no program of ours: the sampler's, of threads
// that stand anywhere in managed code.
func alone(v vm.Variant) (out []Case) {
	for _, c := range Script(v) {
		if !c.Run.Dies && slices.Contains([]string{"initialize", "sampler", "suspended"}, c.Caller) &&
			slices.Contains([]string{"zero", "spin", "sleep", "wait"}, c.Target) {
			out = append(out, c)
		}
	}
	return out
}

// The part of the script that the .NET 10 single file can be asked, whose program
// is somebody else's: every target is its main thread, which waits for input.
func TestConformNet10Linux(t *testing.T) {
	needCommand(t, "gcc")
	azmcp := need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	lib := filepath.Join(t.TempDir(), "libconform.so")
	build(t, "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", lib, source("conform.c"), "-lpthread")
	conformance(t, vm.Net10Linux, alone(vm.Net10Linux), func(t *testing.T, run Run, dir string, env []string) string {
		cmd := exec.Command(azmcp, "server", "start")
		cmd.Env = append(os.Environ(), append(env, "CORECLR_PROFILER_PATH="+lib, "CONFORM_ALONE=5",
			"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "AZURE_MCP_COLLECT_TELEMETRY=false",
			"CONFORM_SCRIPT="+filepath.Join(dir, "script"), "CONFORM_OUT="+filepath.Join(dir, "out"))...)
		in, err := cmd.StdinPipe() // its end would end the program
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		return finish(t, run, cmd, dir)
	})
}

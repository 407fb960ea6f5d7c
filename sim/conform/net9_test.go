package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

const root = "../.."

// hangs is how long a process may take whose end is not expected, once it has
// made its calls; limit is for all others.
const hangs, limit = 8 * time.Second, 3 * time.Minute

func init() {
	const twice = "the real one takes a second suspension by a thread it does not know, and the process never runs on; the sampler never asks for one (sim, TestRoundProtocol)"
	explained[vm.Net10Windows] = map[string]string{"suspended.suspend": twice}
	explained[vm.Net9Linux] = map[string]string{"suspended.suspend": twice}
	explained[vm.Net10Linux] = map[string]string{"suspended.suspend": twice}
}

func source(name string) string { return filepath.Join(root, "profiler", "testdata", name) }

// finish runs cmd to its end. One that is to die is given up some time after it
// has made its calls.
func finish(t *testing.T, run Run, cmd *exec.Cmd, dir string) (fate string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &errs, 5*time.Second
	must.Do(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var given <-chan time.Time
	made := time.NewTicker(100 * time.Millisecond)
	defer made.Stop()
	for {
		select {
		case err := <-done:
			return ended(t, err, errs.String())
		case <-made.C:
			if out, _ := os.ReadFile(filepath.Join(dir, "out")); run.Dies && given == nil && len(out) > 0 {
				given = time.After(hangs)
			}
			continue
		case <-given:
			fate = "the process hangs"
		case <-ctx.Done():
			fate = fmt.Sprintf("no end after %v", limit)
		}
		cmd.Process.Kill()
		<-done
		return fate
	}
}

// fatal is what the CLR tells the event log, or conform_windows.c says, of the end
// of a process.
var fatal = regexp.MustCompile(`with exit code (?:0x)?([0-9a-f]{8})`)

func ended(t *testing.T, err error, stderr string) string {
	var exit *exec.ExitError
	switch code := fatal.FindStringSubmatch(stderr); {
	case err == nil, errors.Is(err,
		exec.ErrWaitDelay): // it has ended well; services that Wine started for it keep its output open
		return ""
	case code != nil:
		return "the process ends with " + code[1]
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return fmt.Sprintf("the process ends with %v", ws.Signal())
		}
		return fmt.Sprintf("the process ends with %x", uint32(exit.ExitCode()))
	}
	t.Fatal(err)
	return ""
}

// command is a program with the mode of a run as its last argument.
func command(run Run, argv ...string) *exec.Cmd {
	if run.Mode != "" {
		argv = append(argv, run.Mode)
	}
	return exec.Command(argv[0], argv[1:]...)
}

// underLinux runs cmd with the profiler lib to its end.
func underLinux(t *testing.T, run Run, cmd *exec.Cmd, dir, lib string, env []string) (fate string) {
	t.Helper()
	cmd.Env = append(os.Environ(), append(env, "CORECLR_PROFILER_PATH="+lib,
		"CONFORM_SCRIPT="+filepath.Join(dir, "script"), "CONFORM_OUT="+filepath.Join(dir, "out"))...)
	return finish(t, run, cmd, dir)
}

// linuxProfiler builds the profiler that makes the calls, as libconform.so in bin.
func linuxProfiler(t *testing.T, bin string) (lib string) {
	t.Helper()
	lib = filepath.Join(bin, "libconform.so")
	needs.Build(t, "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", lib,
		source("conform.c"), "-lpthread")
	return lib
}

// The script on .NET 9 and on the simulated CLR.
func TestConformNet9Linux(t *testing.T) {
	needs.Command(t, "gcc", "mcs")
	runtime := needs.Runtime9(t)
	bin := t.TempDir()
	host, lib, app := filepath.Join(bin, "swhost"), linuxProfiler(t, bin), filepath.Join(bin, "Conform.exe")
	needs.Build(t, "gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", host, source("host.c"), "-ldl")
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-warn:1", "-out:"+app, source("Conform.cs"))
	conformance(t, real{vm.Net9Linux, func(t *testing.T, run Run, dir string, env []string) string {
		return underLinux(t, run, command(run, host, runtime, app), dir, lib, env)
	}})
}

// The script on .NET 10, which exists as a single-file program, and on the
// simulated CLR.
func TestConformNet10Linux(t *testing.T) {
	needs.Command(t, "gcc", "mcs")
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	bin := t.TempDir()
	program, lib := filepath.Join(bin, "conform"), linuxProfiler(t, bin)
	needs.SingleFile(t, azmcp, "azmcp.dll", program, source("Conform.cs"))
	conformance(t, real{vm.Net10Linux, func(t *testing.T, run Run, dir string, env []string) string {
		env = append(env, "LD_LIBRARY_PATH="+bin, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
		return underLinux(t, run, command(run, program), dir, lib, env)
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
		env = append(env, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
		return underWine(t, run, command(run, wine, "exec", program), dir, lib, env)
	}})
}

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
	needs.Build(t, append([]string{mingw, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-o",
		lib, source("conform_windows.c")}, flags...)...)
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
		"CONFORM_SCRIPT="+winePath(filepath.Join(dir, "script")),
		"CONFORM_OUT="+winePath(filepath.Join(dir, "out")))...)
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
			runtime := filepath.Dir(needs.File(t, ".cache", "dotnet-"+version+"-win", "package", "shared",
				"Microsoft.NETCore.App", version, "coreclr.dll"))
			conformance(t, real{vm.Core22Windows,
				func(t *testing.T, run Run, dir string, env []string) string {
					cmd := command(run, wine, "exec", host, winePath(runtime), winePath(app))
					return underWine(t, run, cmd, dir, lib, env)
				}})
		})
	}
}

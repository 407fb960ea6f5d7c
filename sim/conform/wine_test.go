package conform

import (
	"github.com/seedwalk/seedwalk/testkit/needs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

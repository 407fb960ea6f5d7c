package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The tests of Windows runtimes start Windows programs: from Linux by Wine, or directly if the test itself is
// a Windows program.

// native reports whether the test is a Windows program.
const native = runtime.GOOS == "windows"

// program is the command line that runs a Windows program.
func program(t *testing.T, exe string, args ...string) []string {
	t.Helper()
	if native {
		return append([]string{exe}, args...)
	}
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	return append([]string{need(t, "scripts", "wine.sh"), "exec", exe}, args...)
}

// hungCode is the exit code of swhost and launch if the program did not end within SWHOST_LIMIT.
const hungCode = 124

// wine is the command line that runs a program of out/windows.
func wine(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return program(t, need(t, "out", "windows", name), args...)
}

// wineRun runs a Windows program to its end.
func wineRun(t *testing.T, env []string, exe string, args ...string) result {
	t.Helper()
	r := run(t, 3*time.Minute, env, program(t, exe, args...)...)
	r.stdout, r.stderr = strings.ReplaceAll(r.stdout, "\r", ""), strings.ReplaceAll(r.stderr, "\r", "")
	if own := winesOwn.FindString(r.stderr); own != "" {
		t.Logf("not of the program: %s", own)
		r.stderr = winesOwn.ReplaceAllString(r.stderr, "")
	}
	return r
}

// winesOwn matches Wine's message that one of its services died. Services are started together with a program
// and share its output; ntoskrnl.exe of Wine 8 sometimes reads through a nil pointer. If a program of ours
// dies, its exit code is wrong, so the message is not needed.
var winesOwn = regexp.MustCompile(`(?m)^wine: Unhandled .* starting debugger\.\.\.\n`)

// windowsPath is the Windows name of a file of ours.
func windowsPath(path string) string {
	if native {
		return path
	}
	return "Z:" + strings.ReplaceAll(path, "/", `\`)
}

// ownPath is the reverse.
func ownPath(path string) string {
	if native {
		return path
	}
	return strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "Z:")
}

// system32 is the folder of the system's libraries.
func system32(t *testing.T) string {
	t.Helper()
	if native {
		return filepath.Join(os.Getenv("SystemRoot"), "system32")
	}
	return filepath.Join(need(t, ".cache", "wine", "prefix"), "drive_c", "windows", "system32")
}

// mingw is the C compiler that makes Windows programs.
func mingw(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"x86_64-w64-mingw32-gcc", "gcc"} {
		if cc, err := exec.LookPath(name); err == nil {
			return cc
		}
		if !native {
			break // gcc makes programs of this system
		}
	}
	t.Skip("SKIPPED-CHECK: no mingw; run scripts/deps.sh windows")
	return ""
}

// winesOwn matches the messages of Wine's services, and no other lines.
func TestWinesOwn(t *testing.T) {
	const said = "seedwalk: one line\nwine: Unhandled page fault on read access to 0000000000000008 at address 000000031CAA2391 (thread 008c), starting debugger...\nseedwalk: wine: Unhandled\n"
	const want = "seedwalk: one line\nseedwalk: wine: Unhandled\n"
	if got := winesOwn.ReplaceAllString(said, ""); got != want {
		t.Errorf("%q", got)
	}
}

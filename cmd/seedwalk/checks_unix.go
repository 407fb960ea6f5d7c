//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// checks in the order they are shown.
var checks = []func(*patient) finding{checkSystem, checkLibrary, checkLoads, checkRuntime, checkNames, checkEnvironment, checkWay, checkClock, checkSignal, checkSocket, checkOutput, checkCommand}

const (
	usualPlaces = "DOTNET_ROOT, dotnet on PATH, /usr/share/dotnet, /usr/lib/dotnet, ~/.dotnet"
	whyLeast    = "earlier ones cannot be suspended by a profiler"
)

// runtimeFolders are where installers put .NET.
func runtimeFolders() []string {
	home, _ := os.UserHomeDir()
	return []string{"/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", filepath.Join(home, ".dotnet")}
}

// sampleSignal is the signal that stops a thread for its sample: SIGRTMIN+5 of
// the C library (34+5). The CLR's own is SIGRTMIN.
const sampleSignal = 39

func checkSystem(*patient) finding {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return finding{"system", bad, err.Error(), ""}
	}
	detail := fmt.Sprintf("Linux %s, %s, %d CPUs; no special rights are needed", unix.ByteSliceToString(u.Release[:]), runtime.GOARCH, runtime.NumCPU())
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return finding{"system", bad, detail, "there is a profiler for x86-64 and AArch64 only"}
	}
	return finding{"system", good, detail, ""}
}

// checkLoads lets the dynamic loader load the library into a process that does
// nothing: missing libraries and symbols show there as they would in the CLR,
// where nobody sees them.
func checkLoads(p *patient) finding {
	const name = "library loads"
	path, err := filepath.Abs(p.profiler)
	if err != nil || libraryProblem(path) != "" {
		return finding{} // said already
	}
	idle, err := exec.LookPath("true")
	if err != nil {
		return finding{name, note, "not tried: no program `true`", ""}
	}
	cmd := exec.Command(idle)
	cmd.Env = []string{"LD_PRELOAD=" + path, "LD_BIND_NOW=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		why := strings.TrimSpace(string(out))
		if why == "" {
			why = err.Error()
		}
		line, _, _ := strings.Cut(why, "\n")
		return finding{name, bad, line, "install what is missing, or build the library on this machine"}
	}
	return finding{name, good, "the dynamic loader takes it", ""}
}

// checkSignal asks a child, which sees what a recorded command would see.
func checkSignal(*patient) finding {
	name := fmt.Sprintf("signal %d", sampleSignal)
	b, err := exec.Command("cat", "/proc/self/status").Output()
	if err != nil {
		return finding{name, note, "cannot tell: " + err.Error(), ""}
	}
	if field := heldBack(string(b), sampleSignal); field != "" {
		return finding{name, bad, field + " in new processes: threads could not be stopped for a sample", "start from a shell that neither blocks nor ignores it"}
	}
	return finding{name, good, "free", ""}
}

// heldBack reads proc(5)'s status: whether a signal is blocked or ignored.
func heldBack(status string, signal int) string {
	for _, line := range strings.Split(status, "\n") {
		key, value, _ := strings.Cut(line, ":")
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil || mask>>(signal-1)&1 == 0 {
			continue
		}
		switch key {
		case "SigBlk":
			return "blocked"
		case "SigIgn":
			return "ignored"
		}
	}
	return ""
}

func checkSocket(*patient) finding {
	const name = "socket"
	dir, err := os.MkdirTemp("", "seedwalk-doctor-")
	if err != nil {
		return finding{name, bad, err.Error(), "set TMPDIR to a directory you may write to"}
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		return finding{name, bad, err.Error(), "set TMPDIR to a directory with a short name on a local disk"}
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		return finding{name, bad, err.Error(), "set TMPDIR to another directory"}
	}
	c.Close()
	return finding{name, good, "in " + os.TempDir(), ""}
}

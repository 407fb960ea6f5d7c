package doctor

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

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/symbol"
)

// checks in the order they are shown.
var checks = []func(*patient) Finding{checkSystem, checkLibrary, checkLoads, checkRuntime, checkNames,
	checkEnvironment, checkWay, checkClock, checkSignal, checkSocket, checkFile, checkOutput, checkCommand}

const (
	usualPlaces = "DOTNET_ROOT, dotnet on PATH, /usr/share/dotnet, /usr/lib/dotnet, ~/.dotnet"
	whyLeast    = "earlier ones cannot be suspended by a profiler"
)

// sampleSignal is the signal that stops a thread for its sample with --mode snapshot: SIGRTMIN+5 of the C
// library (34+5). The CLR's own is SIGRTMIN.
const sampleSignal = 39

func checkSystem(*patient) Finding {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Finding{"system", Bad, err.Error(), ""}
	}
	detail := fmt.Sprintf("Linux %s, %s, %d CPUs; no special rights are needed",
		unix.ByteSliceToString(u.Release[:]), runtime.GOARCH, runtime.NumCPU())
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return Finding{"system", Bad, detail, "use a machine with an x86-64 or ARM64 processor"}
	}
	return Finding{"system", Good, detail, ""}
}

// checkLoads lets the dynamic loader load the library into a process that does
// nothing. Missing libraries and symbols are reported there; in the CLR they would not
// be.
func checkLoads(p *patient) Finding {
	const name = "library loads"
	path, err := filepath.Abs(p.profiler)
	if err != nil || libraryProblem(path) != "" {
		return Finding{} // said already
	}
	idle, err := exec.LookPath("true")
	if err != nil {
		return Finding{name, Note, "not tried: no program `true`", ""}
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
		return Finding{name, Bad, line, "install what is missing, or build the library on this machine"}
	}
	return Finding{name, Good, "it can be loaded", ""}
}

// checkSignal asks a child, which sees what a recorded command would see.
func checkSignal(*patient) Finding {
	name := fmt.Sprintf("signal %d", sampleSignal)
	b, err := exec.Command("cat", "/proc/self/status").Output()
	if err != nil {
		return Finding{name, Note, "cannot tell: " + err.Error(), ""}
	}
	if field := heldBack(string(b), sampleSignal); field != "" {
		return Finding{name, Note, field + " in new processes: with --mode snapshot, their threads cannot be sampled",
			"use the default mode, or start from a shell that neither blocks nor ignores it"}
	}
	return Finding{name, Good, "free", ""}
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

func checkSocket(*patient) Finding {
	const name = "socket"
	dir, err := os.MkdirTemp("", "seedwalk-doctor-")
	if err != nil {
		return Finding{name, Bad, err.Error(), "set TMPDIR to a directory you may write to"}
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		return Finding{name, Bad, err.Error(), "set TMPDIR to a directory with a short name on a local disk"}
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		return Finding{name, Bad, err.Error(), "set TMPDIR to another directory"}
	}
	c.Close()
	return Finding{name, Good, "in " + os.TempDir(), ""}
}

// checkFile creates a file as the probe does, which shares it with the tool.
func checkFile(*patient) Finding {
	const name, size = "shared file", probe.FileSize + 2<<20 // with the room for reads
	fd, inMemory := unix.MemfdCreate("seedwalk-doctor", unix.MFD_CLOEXEC)
	if inMemory == nil {
		unix.Close(fd)
		return Finding{name, Good, "in memory", ""}
	}
	fd, err := unix.Open("/dev/shm", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Fallocate(fd, 0, 0, size)
		unix.Close(fd)
	}
	if err == nil {
		return Finding{name, Good, "in /dev/shm", ""}
	}
	return Finding{name, Bad, fmt.Sprintf("neither in memory (memfd_create: %v) nor in /dev/shm (%v)", inMemory, err),
		options.SharedFileRemedy}
}

// checkNames looks at whether functions of the runtime will have names: the images that
// Microsoft ships have none, and a debug file beside them does.
func checkNames(p *patient) Finding {
	const name = "names"
	var images []string
	if len(p.command) > 0 {
		if path, err := exec.LookPath(p.command[0]); err == nil {
			images = append(images, path)
		}
	}
	for _, r := range cli.FindRuntimes() {
		images = append(images, r.Path)
	}
	for _, path := range images {
		if file := missingDebugFile(path); file != "" {
			return Finding{name, Note,
				fmt.Sprintf("%s has no symbols: its frames will read %s+0x...", path,
					filepath.Base(path)),
				fmt.Sprintf("record --symbols https://msdl.microsoft.com/download/symbols, or put %s into %s",
					file, filepath.Dir(path))}
		}
	}
	return Finding{}
}

// missingDebugFile is the name of the debug file that an image asks for, "" if it asks
// for none or has it beside it.
func missingDebugFile(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file := symbol.NewResolver().DebugFile(path, "")
	if file == "" {
		return ""
	}
	for _, dir := range []string{"", ".debug"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), dir, file)); err == nil {
			return ""
		}
	}
	return file
}

// checkClock predicts which clock would sample CPU time.
func checkClock(*patient) Finding {
	const name = "clock"
	err := outside.PerfEvents()
	if err == nil {
		return Finding{name, Good, "perf events, with high-resolution timers", ""}
	}
	detail := "random moments of seedwalk, because the kernel permits no perf events (" + err.Error() + ")"
	remedy := "let the container's seccomp profile allow perf_event_open"
	if level, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil && len(level) > 0 &&
		level[0] > '2' && os.Geteuid() != 0 {
		remedy = "for a more exact clock set kernel.perf_event_paranoid to 2; it is " +
			strings.TrimSpace(string(level))
	}
	return Finding{name, Note, detail, remedy}
}

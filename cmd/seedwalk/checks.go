package main

import (
	"debug/elf"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/record"
)

// machines are the architectures there is a profiler for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// sampleSignal is the signal that stops a thread for its sample: SIGRTMIN+5 of
// the C library (34+5). The CLR's own is SIGRTMIN.
const sampleSignal = 39

func checkLibrary(p *patient) finding {
	if _, err := os.Stat(p.profiler); err != nil {
		return finding{"profiler library", bad, err.Error(), "build it (make), or say where it is: --profiler PATH or SEEDWALK_PROFILER"}
	}
	if why := libraryProblem(p.profiler, machines[runtime.GOARCH]); why != "" {
		return finding{"profiler library", bad, p.profiler + ": " + why, "build it for this machine"}
	}
	return finding{"profiler library", good, p.profiler, ""}
}

// checkLoads lets the dynamic loader load the library into a process that does
// nothing: missing libraries and symbols show there as they would in the CLR,
// where nobody sees them.
func checkLoads(p *patient) finding {
	const name = "library loads"
	path, err := filepath.Abs(p.profiler)
	if err != nil || libraryProblem(path, machines[runtime.GOARCH]) != "" {
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

func checkRuntime(p *patient) finding {
	const name = ".NET runtime"
	found := findRuntimes()
	if len(found) == 0 {
		if len(p.command) > 0 {
			return finding{name, note, "none found in the usual places", "the command must bring its own"}
		}
		return finding{name, note, "none found (DOTNET_ROOT, dotnet on PATH, /usr/share/dotnet, /usr/lib/dotnet, ~/.dotnet)",
			"set DOTNET_ROOT, or record a program that brings its own runtime"}
	}
	var lines, old []string
	for _, r := range found {
		version := r.Version
		if version == "" {
			version = "unknown version"
		}
		if tooOld(r.Version) {
			old = append(old, version)
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", version, r.From))
	}
	if len(old) == len(found) {
		return finding{name, bad, strings.Join(lines, ", ") + " is too old", "install .NET Core 3.0 or later: earlier ones cannot be suspended by a profiler"}
	}
	return finding{name, good, strings.Join(lines, ", "), ""}
}

func checkEnvironment(p *patient) finding {
	const name = "environment"
	if r := record.OtherProfiler(p.env); r != nil {
		return finding{name, bad, r.Where + ": " + r.What, r.Remedy}
	}
	if lines := record.Blockers(p.env); len(lines) > 0 {
		return finding{name, bad, strings.Join(lines, "; "), "unset it for the command to record"}
	}
	return finding{name, good, "no other profiler, diagnostics are not switched off", ""}
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

func checkOutput(*patient) finding {
	const name = "output"
	wd, err := os.Getwd()
	if err == nil {
		err = writable(wd)
	}
	if err != nil {
		return finding{name, note, "cannot write here: " + err.Error(), "say where to with --output"}
	}
	return finding{name, good, "this directory can be written to", ""}
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".seedwalk-doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, 1<<16))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func checkCommand(p *patient) finding {
	const name = "command"
	if len(p.command) == 0 {
		return finding{}
	}
	path, err := exec.LookPath(p.command[0])
	if err != nil {
		return finding{name, bad, err.Error(), "check the name and PATH"}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := elf.Open(path)
	if err != nil {
		return finding{name, note, path + " is no native program (a script?): the .NET processes it starts are recorded", ""}
	}
	defer f.Close()
	if f.Machine != machines[runtime.GOARCH] {
		return finding{name, bad, fmt.Sprintf("%s is for %v", path, f.Machine), "the profiler library must be for the same machine"}
	}
	return describeProgram(path)
}

// describeProgram says what kind of .NET program a native one is.
func describeProgram(path string) finding {
	const name = "command"
	base := strings.TrimSuffix(path, filepath.Ext(path))
	_, errConfig := os.Stat(base + ".runtimeconfig.json")
	_, errCLR := os.Stat(filepath.Join(filepath.Dir(path), "libcoreclr.so"))
	version := runtimeVersion(path)
	switch {
	case tooOld(version):
		return finding{name, bad, path + " is .NET " + version, "it is too old: .NET Core 3.0 or later can be recorded"}
	case filepath.Base(path) == "dotnet":
		return finding{name, good, path + " is the .NET launcher", ""}
	case isBundle(path) || errConfig == nil || errCLR == nil:
		return finding{name, good, strings.TrimSpace(path + " is a .NET program " + version), ""}
	}
	return finding{name, note, path + " does not look like a .NET program", "that is fine if it hosts or starts one"}
}

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/process/program"
)

// What is checked on every platform; checks_unix.go and checks_windows.go have
// the rest.

func checkLibrary(p *patient) Finding {
	const name = "profiler library"
	switch _, err := os.Stat(p.profiler); {
	case errors.Is(err, fs.ErrNotExist) && p.found && runtime.GOOS == "linux":
		return Finding{name, Note,
			"there is no " + options.LibraryName +
				", so --mode snapshot is not available; everything else needs no library", ""}
	case err != nil:
		return Finding{name, Bad, err.Error(), options.LibraryRemedy}
	}
	if why := libraryProblem(p.profiler); why != "" {
		return Finding{name, Bad, p.profiler + ": " + why, "build it for this machine"}
	}
	return Finding{name, Good, p.profiler, ""}
}

func libraryProblem(path string) string {
	return program.LibraryProblem(path, runtime.GOOS, runtime.GOARCH)
}

func checkRuntime(*patient) Finding {
	const name = ".NET runtime"
	found := cli.FindRuntimes()
	if len(found) == 0 {
		return Finding{name, Note, "none found (" + usualPlaces + ")",
			"set DOTNET_ROOT, or record a program with its own runtime"}
	}
	var lines []string
	old := 0
	for _, r := range found {
		version := r.Version
		if version == "" {
			version = "unknown version"
		}
		if program.TooOld(r.Version, runtime.GOOS) {
			version += " (too old)"
			old++
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", version, r.From))
	}
	detail := strings.Join(lines, ", ")
	if old == len(found) {
		return Finding{name, Bad, detail,
			fmt.Sprintf("install %s or later: %s", program.Least(runtime.GOOS), whyLeast)}
	}
	return Finding{name, Good, detail, ""}
}

func checkEnvironment(p *patient) Finding {
	const name = "environment"
	if r := options.AlreadyRecording(p.env); r != nil {
		return Finding{name, Bad, r.Where + ": " + r.What, r.Remedy}
	}
	if lines := options.Blockers(p.env); len(lines) > 0 {
		return Finding{name, Bad, strings.Join(lines, "; "), "unset it for the command to record"}
	}
	if other := options.OtherProfiler(p.env); other != "" {
		return Finding{name, Note,
			other + ": another profiler is set; seedwalk runs beside it as a notification profiler",
			"a runtime before .NET 6 loads only one profiler: unset it there"}
	}
	if line := options.FrameworkProfiler(p.env); line != "" {
		return Finding{name, Note, line, ""}
	}
	return Finding{name, Good, "no other profiler is set, and diagnostics are enabled", ""}
}

func checkOutput(*patient) Finding {
	const name = "output"
	wd, err := os.Getwd()
	if err == nil {
		err = writable(wd)
	}
	if err != nil {
		return Finding{name, Note, "cannot write here: " + err.Error(), "choose another place with --output"}
	}
	return Finding{name, Good, "this directory is writable", ""}
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

func checkCommand(p *patient) Finding {
	const name = "command"
	if len(p.command) == 0 {
		return Finding{}
	}
	path, err := exec.LookPath(p.command[0])
	if errors.Is(err, exec.ErrDot) && runtime.GOOS == "windows" {
		err = nil // record runs it anyway
	}
	if err != nil {
		return Finding{name, Bad, err.Error(), "check the name and PATH"}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := program.Open(path)
	if err != nil {
		return Finding{name, Bad, err.Error(), "check that you may read it"}
	}
	return describeProgram(&f, runtime.GOOS, runtime.GOARCH)
}

// describeProgram reports what kind of .NET program a file is, on a system.
func describeProgram(f *program.File, goos, goarch string) Finding {
	const name = "command"
	if why, remedy := options.Unsupported(f, goos, goarch); why != "" {
		return Finding{name, Bad, f.Path + " " + why, remedy}
	}
	if f.Format != program.FormatOf(goos) {
		return Finding{name, Note,
			f.Path + " is not a native program (a script?); the .NET processes that it starts are recorded", ""}
	}
	version := bundledVersion(f, goos)
	switch {
	case program.TooOld(version, goos):
		return Finding{name, Bad, f.Path + " is .NET " + version,
			fmt.Sprintf("it is too old: %s or later can be recorded", program.Least(goos))}
	case isMuxer(f.Path):
		return Finding{name, Good, f.Path + " is the .NET launcher", ""}
	case version != "" || program.IsLauncher(f.Path) || beside(f.Path, ".runtimeconfig.json"):
		return Finding{name, Good, strings.TrimSpace(f.Path + " is a .NET program " + version), ""}
	case f.Mscoree:
		return Finding{name, Note, f.Path + " starts the .NET Framework (it imports mscoree.dll)",
			"only processes of " + program.Least(goos) + " or later are recorded"}
	}
	return Finding{name, Note, f.Path + " does not look like a .NET program",
		"this is fine if it hosts a .NET runtime or starts a .NET program"}
}

// bundledVersion is the version of the runtime that a program brings along: in
// its folder or in itself, "" if it brings none or it is not known.
func bundledVersion(f *program.File, goos string) string {
	own := filepath.Join(filepath.Dir(f.Path), program.RuntimeName(goos))
	if _, err := os.Stat(own); err == nil {
		return program.RuntimeVersion(own)
	}
	if f.Format == program.ELF {
		return program.MarkedVersion(f.Path)
	}
	return "" // the version in a program of Windows is its own
}

// isMuxer: the launcher of programs in files of their own bears no mark.
func isMuxer(path string) bool {
	base := filepath.Base(path)
	return base == "dotnet" || strings.EqualFold(base, "dotnet.exe")
}

// beside reports whether there is a file of the program's name with another
// ending.
func beside(path, ending string) bool {
	_, err := os.Stat(strings.TrimSuffix(path, filepath.Ext(path)) + ending)
	return err == nil
}

// judgeWindows reports whether recording works on a version of Windows. It runs on any host,
// for tests. goarch is the architecture of this program, and native that of the machine ("" if
// unknown). wine is the version of Wine, or "" on Windows itself.
func judgeWindows(major, minor, build int, goarch, native, wine string) Finding {
	const name = "system"
	detail := fmt.Sprintf("Windows %d.%d.%d", major, minor, build)
	if wine != "" {
		detail = fmt.Sprintf("Wine %s as %s", wine, detail)
	}
	detail += fmt.Sprintf(", %s, %d CPUs", goarch, runtime.NumCPU())
	switch why, remedy := options.UnsupportedMachine(goarch, native); {
	case why != "":
		return Finding{name, Bad, detail + ": " + why, remedy}
	case goarch != "amd64":
		return Finding{name, Bad, detail, "use a machine with an x86-64 processor"}
	case major < 10 && wine == "": // Wine has what Go needs, whatever it calls itself
		return Finding{name, Bad,
			detail + ": the Go runtime in the profiler needs Windows 10 or Windows Server 2016",
			"record on a later Windows"}
	}
	return Finding{name, Good, detail + "; no special rights are needed", ""}
}

package cli

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// FindProfiler returns the path of the profiler library: SEEDWALK_PROFILER, whether it
// exists or not, else beside this program, else where packages install it. If there is
// none, FindProfiler returns the path beside this program.
func FindProfiler() string {
	path, _ := findLibrary("SEEDWALK_PROFILER", options.LibraryName)
	return path
}

// FindProbe returns the probe's path, found like the profiler's; "" means the one inside
// this program.
func FindProbe() string {
	path, ok := findLibrary("SEEDWALK_PROBE", probe.LibraryName)
	if !ok {
		return ""
	}
	return path
}

// findLibrary looks where an environment variable says, beside this program, and
// where packages install libraries.
func findLibrary(variable, name string) (path string, found bool) {
	if p := os.Getenv(variable); p != "" {
		return p, true
	}
	exe, err := os.Executable()
	if err != nil {
		return name, false
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	dir := filepath.Dir(exe)
	places := []string{dir, filepath.Join(dir, "..", "lib"), filepath.Join(dir, "..", "lib", "seedwalk")}
	for _, p := range places {
		if _, err := os.Stat(filepath.Join(p, name)); err == nil {
			return filepath.Join(p, name), true
		}
	}
	return filepath.Join(dir, name), false
}

// runtimeFound is a .NET runtime on this machine.
type runtimeFound struct {
	Path    string // of the CLR's file
	Version string // "" = unknown
	From    string // how it was found
}

// FindRuntimes lists the runtimes in DOTNET_ROOT, beside the dotnet on PATH, and in the
// usual folders.
func FindRuntimes() []runtimeFound {
	var out []runtimeFound
	seen := map[string]bool{}
	look := func(root, from string) {
		for _, p := range coreclrBelow(root) {
			if real, err := filepath.EvalSymlinks(p); err == nil && !seen[real] {
				seen[real] = true
				out = append(out, runtimeFound{Path: real, Version: program.RuntimeVersion(real), From: from})
			}
		}
	}
	if root := os.Getenv("DOTNET_ROOT"); root != "" {
		look(root, "DOTNET_ROOT")
	}
	if p, err := exec.LookPath("dotnet"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			look(filepath.Dir(real), "dotnet on PATH")
		}
	}
	for _, root := range runtimeFolders() {
		look(root, root)
	}
	return out
}

// coreclrBelow finds the CLR's files at most five folders below root.
func coreclrBelow(root string) (found []string) {
	name := program.RuntimeName(runtime.GOOS)
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // an unreadable folder has no usable runtime
		case d.IsDir() && strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator)) > 5:
			return fs.SkipDir
		case d.Name() == name:
			found = append(found, path)
		}
		return nil
	})
	return found
}

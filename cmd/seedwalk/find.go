package main

import (
	"bytes"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// findProfiler returns the library's path: SEEDWALK_PROFILER, beside this
// program, or where packages install it. If there is none it returns the place
// where it should be.
func findProfiler() string {
	if p := os.Getenv("SEEDWALK_PROFILER"); p != "" {
		return p
	}
	exe, err := os.Executable()
	if err != nil {
		return profilerName
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	dir := filepath.Dir(exe)
	places := []string{dir, filepath.Join(dir, "..", "lib"), filepath.Join(dir, "..", "lib", "seedwalk")}
	for _, p := range places {
		if _, err := os.Stat(filepath.Join(p, profilerName)); err == nil {
			return filepath.Join(p, profilerName)
		}
	}
	return filepath.Join(dir, profilerName)
}

// runtimeFound is a .NET runtime on this machine.
type runtimeFound struct {
	Path    string // of libcoreclr.so, or of a single-file program
	Version string // "" = unknown
	From    string // how it was found
}

// findRuntimes looks where `dotnet` would: DOTNET_ROOT, the dotnet on PATH, the
// usual folders; and in the project's own cache.
func findRuntimes() []runtimeFound {
	var out []runtimeFound
	seen := map[string]bool{}
	look := func(root, from string) {
		for _, p := range coreclrBelow(root) {
			if real, err := filepath.EvalSymlinks(p); err == nil && !seen[real] {
				seen[real] = true
				out = append(out, runtimeFound{Path: real, Version: runtimeVersion(real), From: from})
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
	home, _ := os.UserHomeDir()
	for _, root := range []string{"/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", filepath.Join(home, ".dotnet")} {
		look(root, root)
	}
	look(".cache", "the project's cache")
	return out
}

// coreclrBelow finds libcoreclr.so at most five folders below root.
func coreclrBelow(root string) (found []string) {
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read holds no runtime for us either
		case d.IsDir() && strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator)) > 5:
			return fs.SkipDir
		case d.Name() == "libcoreclr.so":
			found = append(found, path)
		}
		return nil
	})
	return found
}

// versionMark precedes the version in every native .NET binary.
const versionMark = "@(#)Version "

// runtimeVersion reads the version from a native .NET binary, such as
// "9.0.525.21509"; "" if there is none.
func runtimeVersion(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const chunk, overlap = 1 << 20, 64
	b := make([]byte, chunk)
	for off := int64(0); ; off += chunk - overlap {
		n, err := f.ReadAt(b, off)
		if i := bytes.Index(b[:n], []byte(versionMark)); i >= 0 && i+overlap <= n {
			return versionAt(b[i+len(versionMark) : n])
		}
		if err != nil {
			return ""
		}
	}
}

func versionAt(b []byte) string {
	n := 0
	for n < len(b) && n < 32 && (b[n] == '.' || b[n] >= '0' && b[n] <= '9') {
		n++
	}
	return string(b[:n])
}

// tooOld: SuspendRuntime came with .NET Core 3.0, whose native binaries count
// as 4.700.
func tooOld(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major < 3 || major == 4 && minor < 700)
}

// bundleMark is the signature in the header of every single-file .NET program
// (dotnet/runtime src/native/corehost/apphost/bundle_marker.c), with every bit
// turned so that this program does not bear it.
var bundleMark = [32]byte{0x74, 0xed, 0xfd, 0x46, 0x95, 0x9e, 0xdf, 0xc7, 0x8d, 0x84, 0x6c, 0xfd, 0xeb, 0x28, 0x5f, 0xcd,
	0xec, 0x0a, 0x46, 0x19, 0x10, 0x51, 0xcc, 0xe7, 0x11, 0xc4, 0xd2, 0x31, 0xdb, 0x4c, 0x95, 0x51}

// isBundle reports whether a program has the mark, which single files and all
// other .NET launchers have.
func isBundle(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	mark := make([]byte, len(bundleMark))
	for i, b := range bundleMark {
		mark[i] = ^b
	}
	b, err := io.ReadAll(io.LimitReader(f, 64<<20))
	return err == nil && bytes.Contains(b, mark)
}

// tlsLimit is the thread-local storage a library may have and still be loaded
// into a running process: the dynamic loader's spare room is small, and the CLR
// takes some.
const tlsLimit = 1024

// libraryProblem says why path could not serve as a profiler here, "" if
// nothing is to be seen.
func libraryProblem(path string, machine elf.Machine) string {
	f, err := elf.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if f.Type != elf.ET_DYN || f.Machine != machine {
		return "it is for " + f.Machine.String() + ", this machine is " + machine.String()
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_TLS && p.Memsz > tlsLimit {
			return "it has " + strconv.FormatUint(p.Memsz, 10) + " bytes of thread-local storage: dlopen would fail"
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return err.Error()
	}
	for _, s := range symbols {
		if s.Name == "DllGetClassObject" && s.Section != elf.SHN_UNDEF {
			return ""
		}
	}
	return "it does not export DllGetClassObject"
}

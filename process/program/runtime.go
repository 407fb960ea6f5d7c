package program

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/pe"
)

// RuntimeName returns the file name of the CLR on a system.
func RuntimeName(goos string) string {
	if goos == "windows" {
		return "coreclr.dll"
	}
	return "libcoreclr.so"
}

// RuntimeVersion returns a .NET runtime's version from the CLR's file: that of its installation folder, such
// as "9.0.5", or else the version in the file, as PublicVersion formats it, or else "". Before .NET
// 5 the version begins with 4.
func RuntimeVersion(path string) string {
	if v := folderVersion(path); v != "" {
		return v
	}
	if v := MarkedVersion(path); v != "" {
		return v
	}
	f, err := pe.Open(path)
	if err != nil {
		return ""
	}
	if v := committedVersion(path); v != "" {
		return v // a single-file program's version resource belongs to the program
	}
	v, ok := f.Version()
	if !ok {
		return ""
	}
	return PublicVersion(fmt.Sprintf("%d.%d.%d.%d", v[0], v[1], v[2], v[3]))
}

// PublicVersion converts the file version of a runtime to its public version: 9.0.525.21509 to 9.0.5. Since
// .NET 5, the third part is the patch number followed by two digits of the year. The fourth part is the date
// and the build of that day (dotnet/arcade, Version.BeforeCommonTargets.targets). It returns any other text
// unchanged.
func PublicVersion(file string) string {
	part := strings.Split(file, ".")
	if len(part) != 4 {
		return file
	}
	major, err1 := strconv.Atoi(part[0])
	build, err2 := strconv.Atoi(part[2])
	if err1 != nil || err2 != nil || major < 5 || build < 20 {
		return file
	}
	return fmt.Sprintf("%s.%s.%d", part[0], part[1], build/100)
}

// folderVersion parses ...Microsoft.NETCore.App/VERSION/coreclr.
func folderVersion(path string) string {
	dir := filepath.Dir(path)
	version := filepath.Base(dir)
	if filepath.Base(filepath.Dir(dir)) != "Microsoft.NETCore.App" || version == "" || version[0] < '0' ||
		version[0] > '9' {
		return ""
	}
	return version
}

// versionMark precedes the version in every native .NET binary of Unix.
const versionMark = "@(#)Version "

// MarkedVersion reads the version from a native .NET binary of Unix, the CLR's file or a single-file program,
// as PublicVersion formats it.
func MarkedVersion(path string) string {
	return scan(path, func(b []byte) string {
		if i := bytes.Index(b, []byte(versionMark)); i >= 0 && i+overlap <= len(b) {
			return PublicVersion(versionAt(b[i+len(versionMark):]))
		}
		return ""
	})
}

// commitMark follows the version in a CLR of Windows, in UTF-16 (dotnet/runtime
// src/coreclr/vm/eventreporter.cpp).
const commitMark = " @Commit: "

// committedVersion reads the version from the CLR in a PE file, "" if it has no mark: .NET Core 3.0 and later
// have one.
func committedVersion(path string) string {
	mark := wide(commitMark)
	return scan(path, func(b []byte) string {
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], mark)
			if i < 0 {
				return ""
			}
			at += i
			if v := versionBefore(b[:at]); v != "" {
				return v
			}
		}
	})
}

func wide(s string) []byte {
	out := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		out = append(out, s[i], 0)
	}
	return out
}

// versionBefore returns the UTF-16 version at the end of b, such as 10.0.9, or 10.0.0-rc.1.25451.107 without
// the part after the hyphen.
func versionBefore(b []byte) string {
	from := len(b)
	for from >= 2 && len(b)-from < overlap && b[from-1] == 0 && b[from-2] > ' ' && b[from-2] < 0x7f {
		from -= 2
	}
	var text []byte
	for i := from; i < len(b); i += 2 {
		text = append(text, b[i])
	}
	if v := versionAt(text); strings.Count(v, ".") == 2 && v[0] != '.' && !strings.HasSuffix(v, ".") {
		return v
	}
	return ""
}

// overlap is how many bytes of a chunk are read again with the next one. Matches may be at most this long.
const overlap = 64

// scan reads a file in pieces until found returns a result.
func scan(path string, found func(b []byte) string) string {
	f, _, err := wholefile.Open(path, math.MaxInt64)
	if err != nil {
		return ""
	}
	defer f.Close()
	const chunk = 1 << 20
	b := make([]byte, chunk)
	for off := int64(0); ; off += chunk - overlap {
		n, err := f.ReadAt(b, off)
		if v := found(b[:n]); v != "" || err != nil {
			return v
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

// Least returns the oldest .NET that can be sampled on a system, for display. On Linux the CLR must suspend
// itself for the profiler, which it can since 3.0.
func Least(goos string) string {
	if goos == "windows" {
		return ".NET Core 2.0"
	}
	return ".NET Core 3.0"
}

// TooOld reports whether a version from RuntimeVersion is older than Least. An unknown version is not.
// Versions 1.x and 2.x both count as 4.6; only their folder distinguishes them.
func TooOld(version, goos string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	switch {
	case err1 != nil || err2 != nil:
		return false
	case goos == "windows":
		return major < 2
	}
	return major < 3 || major == 4 && minor < 700
}

package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/pe"
)

// RuntimeName is the file of the CLR on a system.
func RuntimeName(goos string) string {
	if goos == "windows" {
		return "coreclr.dll"
	}
	return "libcoreclr.so"
}

// RuntimeVersion is a .NET runtime's version, of the CLR's file: that of the
// folder it is installed in, such as "9.0.5", or else what its makers wrote into it,
// as PublicVersion has it; "" if there is none. Before .NET 5 that begins with 4.
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
	v, ok := f.Version()
	if !ok {
		return ""
	}
	return PublicVersion(fmt.Sprintf("%d.%d.%d.%d", v[0], v[1], v[2], v[3]))
}

// PublicVersion makes 9.0.5 of 9.0.525.21509: since .NET 5 the third part of a
// runtime's file version is its patch and two digits of the year, the fourth the date
// and the build of that day (dotnet/arcade, Version.BeforeCommonTargets.targets).
// Others are left as they are.
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

// folderVersion reads ...Microsoft.NETCore.App/VERSION/coreclr.
func folderVersion(path string) string {
	dir := filepath.Dir(path)
	version := filepath.Base(dir)
	if filepath.Base(filepath.Dir(dir)) != "Microsoft.NETCore.App" || version == "" || version[0] < '0' || version[0] > '9' {
		return ""
	}
	return version
}

// versionMark precedes the version in every native .NET binary of Unix.
const versionMark = "@(#)Version "

// MarkedVersion reads the version from a native .NET binary of Unix, the CLR's
// file or a single-file program, as PublicVersion has it.
func MarkedVersion(path string) string {
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
			return PublicVersion(versionAt(b[i+len(versionMark) : n]))
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

// Least is the oldest .NET that can be sampled on a system, for people: on Linux
// the CLR must suspend itself for the profiler, which came with 3.0.
func Least(goos string) string {
	if goos == "windows" {
		return ".NET Core 2.0"
	}
	return ".NET Core 3.0"
}

// TooOld reports whether a version of RuntimeVersion is before Least. One that
// is not known is not. Files of 1.x and 2.x, which both count as 4.6, are told
// apart by their folder only.
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

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
// folder it is installed in, such as "9.0.5", or else what its makers wrote into
// it, such as "9.0.525.21509"; "" if there is none. Before .NET Core 3.0 the
// latter begins with 4.6.
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
	return fmt.Sprintf("%d.%d.%d.%d", v[0], v[1], v[2], v[3])
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
// file or a single-file program.
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

// Package live reads the mappings of a running process and builds its module table.
//
// Sources: proc(5), /proc/PID/maps; process_vm_readv(2); dotnet/runtime
// src/coreclr/minipal/Unix/doublemapping.cpp (.NET 9) for the name of the CLR's
// code mappings; Win32 VirtualQuery and the loader's list of modules.
//
// Strategy on Linux: one source, /proc/PID/maps. An executable mapping of an ELF
// file is native code; of a PE file (.dll), precompiled managed code; without a file,
// or of the CLR's double-mapping file, code that the CLR generated. On Windows, the
// sources are the loader's list and the memory manager (images.go).
//
// Glossary. A *bias* is a mapped address minus the image's own. A *vdso* is the image
// that the kernel maps into every process and that has no file. A file is *replaced*
// if its path names another file than the mapped one.
//
// Known gaps: no macOS.
package live

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64
	Offset     uint64 // into the file
	Inode      uint64
	Exec       bool
	Path       string // as the kernel writes it; empty if anonymous
	Written    int64  // when the file of code was last written, Unix nanoseconds; 0 if unknown
}

// File returns the path of the mapped file, "" if m is nil.
func (m *Mapping) File() string {
	if m == nil {
		return ""
	}
	return m.Path
}

// maxMappings bounds the number of mappings that are read (vm.max_map_count is 65530 by
// default).
const maxMappings = 1 << 20

// Maps reads the mappings of process pid; 0 means this process.
func Maps(pid int) ([]Mapping, error) {
	name := "/proc/self/maps"
	if pid != 0 {
		name = fmt.Sprintf("/proc/%d/maps", pid)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parseMaps(data, nil, map[string]string{})
}

// ParseMaps parses the format of /proc/PID/maps. At a malformed line, it returns an error and
// the mappings before that line.
func ParseMaps(r io.Reader) ([]Mapping, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return parseMaps(data, nil, map[string]string{})
}

// parseMaps appends the mappings of a text to out. Equal paths share one string, since most
// lines repeat a path.
func parseMaps(text []byte, out []Mapping, paths map[string]string) ([]Mapping, error) {
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		if n > maxMappings {
			return out, fmt.Errorf("maps: more than %d lines", maxMappings)
		}
		m, ok := parseMapping(line, paths)
		if !ok {
			return out, fmt.Errorf("maps line %d: %q is not of the form start-end perms offset dev inode path", n, line)
		}
		out = append(out, m)
	}
	return out, nil
}

func parseMapping(line []byte, paths map[string]string) (Mapping, bool) {
	var m Mapping
	space := []byte(" ")
	addr, rest, ok1 := bytes.Cut(line, space)
	perms, rest, ok2 := bytes.Cut(rest, space)
	offset, rest, ok3 := bytes.Cut(rest, space)
	_, rest, ok4 := bytes.Cut(rest, space)
	inode, path, _ := bytes.Cut(rest, space)
	lo, hi, ok5 := bytes.Cut(addr, []byte("-"))
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(perms) < 4 {
		return m, false
	}
	var ok bool
	if m.Start, ok = number(lo, 16); !ok {
		return m, false
	}
	if m.End, ok = number(hi, 16); !ok || m.End < m.Start {
		return m, false
	}
	if m.Offset, ok = number(offset, 16); !ok {
		return m, false
	}
	if m.Inode, ok = number(inode, 10); !ok {
		return m, false
	}
	m.Exec = perms[2] == 'x'
	m.Path = intern(paths, bytes.TrimLeft(path, " "))
	return m, true
}

// maxPaths bounds the strings that intern keeps.
const maxPaths = 1 << 14

// intern returns a path as a string, the same string for equal paths.
func intern(paths map[string]string, path []byte) string {
	if len(path) == 0 {
		return ""
	}
	s, ok := paths[string(path)]
	if !ok {
		if len(paths) >= maxPaths {
			clear(paths)
		}
		s = string(path)
		paths[s] = s
	}
	return s
}

func number(s []byte, base uint64) (uint64, bool) {
	var v uint64
	if len(s) == 0 || len(s) > 20 {
		return 0, false
	}
	for _, c := range s {
		var d uint64
		switch {
		case c >= '0' && c <= '9':
			d = uint64(c - '0')
		case base == 16 && c >= 'a' && c <= 'f':
			d = uint64(c-'a') + 10
		default:
			return 0, false
		}
		v = v*base + d
	}
	return v, true
}

package live

import (
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/internal/emulator"
)

// Emulated reports whether a process is an emulator that runs a program.
func Emulated(pid int) bool { return emulated(pid) != "" }

func emulated(pid int) string { return emulator.Of(fmt.Sprintf("/proc/%d", pid)) }

// Guest lists the mappings of an emulated program. The kernel does not know which of them
// the program may execute. The images say so, and mappings without a file may be code.
type Guest struct {
	pid     int
	arch    context.Arch
	images  map[string]*elf.File // by path; nil if it is not an image of the program
	sigpage uint64               // 0 if not found yet
}

// NewGuest returns the Guest of an emulator's process, nil for any other process.
func NewGuest(pid int) *Guest {
	arch := context.ArchOf(emulated(pid))
	if arch == context.NoArch {
		return nil // registers of other emulators are unknown
	}
	return &Guest{pid: pid, arch: arch, images: map[string]*elf.File{}}
}

// Maps is like the function Maps, with the execute permission of the emulated program.
func (g *Guest) Maps() ([]Mapping, error) {
	all, err := Maps(g.pid)
	for i := range all {
		m := &all[i]
		if g.arch == context.ArchARM64 && g.isSigpage(m) {
			m.Path = sigpage
		}
		switch {
		case m.Path == "" || m.Path == sigpage || strings.HasPrefix(m.Path, "/memfd:doublemapper"):
			m.Exec = true
		default:
			m.Exec = strings.HasPrefix(m.Path, "/") && g.runs(m)
		}
	}
	return all, err
}

// MapsOf returns the mappings of a process, or those of the program that it emulates.
func MapsOf(pid int) ([]Mapping, error) {
	if g := NewGuest(pid); g != nil {
		return g.Maps()
	}
	return Maps(pid)
}

// Has reports whether a mapped file is an image of the emulated program.
func (g *Guest) Has(path string) bool { return g.images[path] != nil }

func (g *Guest) runs(m *Mapping) bool {
	f, known := g.images[m.Path]
	if !known {
		f = g.open(m.Path)
		g.images[m.Path] = f
	}
	if f == nil {
		return false
	}
	exec := false
	for _, s := range f.Segments() { // in the order of offsets; a page of the file can be in two segments
		if m.Offset >= s.Off&^4095 {
			exec = s.Executable()
		}
	}
	return exec
}

// open reads the headers of an image.
func (g *Guest) open(path string) *elf.File {
	path = fmt.Sprintf("/proc/%d/root%s", g.pid, path)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe would block
		return nil
	}
	f, err := elf.Map(path)
	if err != nil || f.Arch() != g.arch || len(f.Segments()) == 0 {
		return nil
	}
	return f
}

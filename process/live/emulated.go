package live

import (
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/internal/emulator"
)

// Emulated reports whether a process is an emulator that runs a program.
func Emulated(pid int) bool { return emulated(pid) != elf.EM_NONE }

func emulated(pid int) elf.Machine { return emulator.Of(fmt.Sprintf("/proc/%d", pid)) }

// Guest lists the mappings of an emulated program. The kernel does not know which of them
// the program may execute. The images say so, and mappings without a file may be code.
type Guest struct {
	pid     int
	machine elf.Machine
	images  map[string]*elf.File // by path; nil if it is not an image of the program
	sigpage uint64               // 0 if not found yet
}

// NewGuest returns the Guest of an emulator's process, nil for any other process.
func NewGuest(pid int) *Guest {
	machine := emulated(pid)
	if machine != elf.EM_AARCH64 && machine != elf.EM_X86_64 {
		return nil // registers of other emulators are unknown
	}
	return &Guest{pid: pid, machine: machine, images: map[string]*elf.File{}}
}

// Maps is like the function Maps, with the execute permission of the emulated program.
func (g *Guest) Maps() ([]Mapping, error) {
	all, err := Maps(g.pid)
	for i := range all {
		m := &all[i]
		if g.machine == elf.EM_AARCH64 && g.isSigpage(m) {
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
	for _, p := range f.Progs { // in the order of offsets; a page of the file can be in two segments
		if p.Type == elf.PT_LOAD && m.Offset >= p.Off&^4095 {
			exec = p.Flags&elf.PF_X != 0
		}
	}
	return exec
}

// open reads the headers of an image and closes the file: only its segments are needed.
func (g *Guest) open(path string) *elf.File {
	path = fmt.Sprintf("/proc/%d/root%s", g.pid, path)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe would block
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if f.Machine != g.machine ||
		!slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_LOAD }) {
		return nil
	}
	return f
}

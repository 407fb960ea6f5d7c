package module

import (
	"errors"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
)

// LoadELF reads the ELF file at path for an image mapped at [start, end). bias is the
// difference between mapped and virtual addresses. The range is always set. Err says what
// could not be read. A damaged CFI table is still set.
func LoadELF(id uint32, path string, start, end, bias uint64) Module {
	f, err := elf.Open(path)
	if err != nil {
		return Module{ID: id, Start: start, End: end, Bias: bias, Path: path, Err: err}
	}
	return ELFFromFile(id, f, path, start, end, bias)
}

// ELFFromFile is LoadELF for an image that is already open.
func ELFFromFile(id uint32, f *elf.File, path string, start, end, bias uint64) Module {
	s := f.CFISections()
	table, err := cfi.Load(CFISections(f, s))
	m := ofELF(id, f, table, path, start, end, bias)
	m.Err = errors.Join(s.Err, err)
	return m
}

// OpenELF is like ELFFromFile but reads only what the first lookup needs. Err does not
// cover damage in the rest; see cfi.Open.
func OpenELF(id uint32, f *elf.File, path string, start, end, bias uint64) Module {
	s := f.CFISections()
	table := cfi.Open(CFISections(f, s))
	if table.Entries() < fewFDEs {
		table.Complete()
	}
	m := ofELF(id, f, table, path, start, end, bias)
	m.Err = s.Err
	return m
}

func ofELF(id uint32, f *elf.File, table *cfi.Table, path string, start, end, bias uint64) Module {
	m := Module{ID: id, Start: start, End: end, Bias: bias, Path: path, BuildID: f.BuildID(), ELF: f}
	n := table.Entries()
	if n > 0 {
		m.CFI = table
	}
	if n < fewFDEs {
		m.Endings = endings(f)
	}
	return m
}

// fewFDEs is the highest number of FDEs in an image that was compiled without unwind
// data: only its assembly has some.
const fewFDEs = 16

// endings finds the exported functions of musl's libc that end a thread or a program.
func endings(f *elf.File) (e [2]uint64) {
	for s := range f.Symbols(true) {
		switch {
		case s.Section == 0:
		case s.Name == "pthread_exit":
			e[0] = s.Value
		case s.Name == "exit":
			e[1] = s.Value
		}
	}
	return e
}

// CFISections returns the sections of an ELF image in the form package cfi takes;
// cfi knows nothing of ELF.
func CFISections(f *elf.File, s elf.CFISections) cfi.Sections {
	return cfi.Sections{
		Arch:    f.Arch(),
		EHFrame: s.EHFrame, EHFrameAddr: s.EHFrameAddr,
		EHFrameHdr: s.EHFrameHdr, EHFrameHdrAddr: s.EHFrameHdrAddr,
		DebugFrame: s.DebugFrame, DebugFrameAddr: s.DebugFrameAddr,
		TextAddr: s.TextAddr, DataAddr: s.DataAddr,
	}
}

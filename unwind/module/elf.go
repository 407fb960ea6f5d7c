package module

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
)

// LoadELF reads the ELF file at path for an image mapped at [start, end). bias is the
// difference between mapped and virtual addresses. The range is always set. Err describes
// what could not be read. A damaged CFI table is set if it has any FDE.
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
	m := elfModule(id, f, table, path, start, end, bias)
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
	m := elfModule(id, f, table, path, start, end, bias)
	m.Err = s.Err
	return m
}

func elfModule(id uint32, f *elf.File, table *cfi.Table, path string, start, end, bias uint64) Module {
	m := Module{ID: id, Start: start, End: end, Bias: bias, Path: path, BuildID: f.BuildID(), ELF: f}
	n := table.Entries()
	if n > 0 {
		m.CFI = table
	}
	if n < fewFDEs {
		m.Endings, m.Functions = exports(f)
	}
	return m
}

// fewFDEs bounds the FDEs of an image that was compiled without unwind data: it has fewer
// than these, all from assembly.
const fewFDEs = 16

// sttFunc is a function's type in a symbol table.
const sttFunc = 2

// exports returns the exported functions of an image, sorted by address. endings are the
// addresses of pthread_exit and exit, or 0 if they are not exported. musl's libc calls them to
// end a thread or a program.
func exports(f *elf.File) (endings [2]uint64, functions []Function) {
	for s := range f.Symbols(true) {
		if s.Section == 0 {
			continue
		}
		switch s.Name {
		case "pthread_exit":
			endings[0] = s.Value
		case "exit":
			endings[1] = s.Value
		}
		if s.Type == sttFunc && s.Size > 0 {
			functions = append(functions, Function{s.Value, s.Size})
		}
	}
	slices.SortFunc(functions, func(a, b Function) int { return cmp.Compare(a.Addr, b.Addr) })
	return endings, functions
}

// Function returns the mapped start of the exported function that contains the mapped address
// addr. Only images with hardly any unwind data have a list of functions; see Module.Functions.
func (m *Module) Function(addr uint64) (first uint64, ok bool) {
	at := addr - m.Bias
	i, exact := slices.BinarySearchFunc(m.Functions, at,
		func(f Function, at uint64) int { return cmp.Compare(f.Addr, at) })
	if !exact {
		i--
	}
	if i < 0 || at-m.Functions[i].Addr >= m.Functions[i].Size {
		return 0, false
	}
	return m.Functions[i].Addr + m.Bias, true
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

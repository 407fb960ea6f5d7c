package module

import (
	"errors"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
)

// LoadPE reads the PE file at path for an image whose first byte is mapped at
// start. end is one past its last byte, or 0 for the size in the image's header.
// Err describes what could not be read.
func LoadPE(id uint32, path string, start, end uint64) Module {
	f, err := pe.Open(path)
	if err != nil {
		return Module{ID: id, Start: start, End: max(start, end), Bias: start, Path: path, Err: err}
	}
	return PEFromFile(id, f, path, start, end)
}

// PEFromFile is LoadPE for an image that is already open. The table of its DWARF sections
// (GNU and LLVM compilers) has the addresses of an image at its preferred base: look up
// RVA + ImageBase.
func PEFromFile(id uint32, f *pe.File, path string, start, end uint64) Module {
	if end <= start {
		end = start + uint64(f.SizeOfImage())
	}
	m := Module{ID: id, Start: start, End: end, Bias: start, Path: path, PE: f}
	if d, ok := f.DebugID(); ok {
		m.BuildID = d.String()
	}
	m.Err = errors.Join(f.Problems()...)
	d := f.DWARF()
	m.Err = errors.Join(m.Err, d.Err)
	if s, ok := peCFI(f, &d); ok {
		table, err := cfi.Load(s)
		if table.Len() > 0 {
			m.CFI = table
		}
		m.Err = errors.Join(m.Err, err)
	}
	return m
}

// peCFI returns the DWARF sections of a PE image in the form package cfi takes.
func peCFI(f *pe.File, d *pe.DWARF) (s cfi.Sections, ok bool) {
	arch, _ := f.Arch()
	s = cfi.Sections{
		Arch: arch, EHFrame: d.EHFrame, EHFrameAddr: d.EHFrameAddr,
		DebugFrame: d.DebugFrame, DebugFrameAddr: d.DebugFrameAddr, TextAddr: d.TextAddr,
	}
	return s, arch != context.NoArch && (d.EHFrame != nil || d.DebugFrame != nil)
}

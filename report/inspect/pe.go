package inspect

import (
	"fmt"
	"sort"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
)

type peReader struct {
	path    string
	f       *pe.File
	arch    context.Arch
	unix    bool
	exports []pe.Export // sorted by RVA
	err     error       // of the exports

	dwarf    *peFrames // nil if the image has no DWARF sections
	dwarfErr error     // of a section that could not be read
}

func openPE(path string) (*peReader, error) {
	f, err := pe.Open(path)
	if err != nil {
		return nil, err
	}
	r := newPE(f)
	if r.arch == context.NoArch {
		return nil, fmt.Errorf("%s: machine %#x is neither x64 nor ARM64 (0x14c is also that of .NET assemblies "+
			"without machine code, which have no unwind data)", path, f.Machine())
	}
	return r, nil
}

// FromPE is Open for an image that is already read.
func FromPE(f *pe.File) *Image { return &Image{Path: f.Name(), reader: newPE(f)} }

func newPE(f *pe.File) *peReader {
	r := &peReader{path: f.Name(), f: f}
	r.arch, r.unix = f.Arch()
	r.exports, r.err = f.Exports()
	sort.SliceStable(r.exports, func(i, j int) bool { return r.exports[i].RVA < r.exports[j].RVA })
	if r.arch != context.NoArch {
		r.dwarf, r.dwarfErr = framesPE(r)
	}
	return r
}

// own takes an RVA, or an address in the image at its preferred base.
func (r *peReader) own(v uint64) uint64 {
	if base := r.f.ImageBase(); v >= base && v-base < uint64(r.f.SizeOfImage()) && v > 1<<32-1 {
		return v - base
	}
	return v
}

func (r *peReader) symbol(name string) (uint64, bool) {
	for i := range r.exports {
		if e := &r.exports[i]; e.Name == name && e.RVA != 0 {
			return uint64(e.RVA), true
		}
	}
	return 0, false
}

// name is the export at an RVA, or the one that the same entry covers.
func (r *peReader) name(rva uint32) string {
	i := sort.Search(len(r.exports), func(i int) bool { return r.exports[i].RVA >= rva })
	if i < len(r.exports) && r.exports[i].RVA == rva {
		return r.exports[i].Name
	}
	return ""
}

func (r *peReader) entries() int {
	if r.arch == context.ArchAMD64 {
		return r.f.AMD64().Len()
	}
	return r.f.ARM64().Len()
}

func (r *peReader) summary() *Summary {
	s := &Summary{File: r.path, Format: "pe", Arch: r.arch.GOARCH(), Base: r.f.ImageBase()}
	if r.unix {
		s.Machine = fmt.Sprintf("machine %#x: precompiled for a CLR on Unix", r.f.Machine())
	}
	if id, ok := r.f.DebugID(); ok {
		s.ID = fmt.Sprintf("%s age %d", strings.TrimSuffix(id.String(), fmt.Sprintf("%X", id.Age)), id.Age)
	}
	for _, name := range []string{".pdata", ".xdata", ".eh_frame", ".debug_frame", ".zdebug_frame"} {
		if x := r.f.Section(name); x != nil {
			s.Sections = append(s.Sections, Section{name, uint64(x.RVA), uint64(max(x.VirtualSize, x.Size))})
		}
	}
	if dir := r.f.ExceptionDirectory(); r.f.Section(".pdata") == nil && len(dir) > 0 {
		s.Sections = append(s.Sections,
			Section{"(exceptions)", 0, uint64(len(dir))}) // inside another section
	}
	s.Counts = append(s.Counts, Count{"entries of the exception directory", r.entries()})
	if r.arch == context.ArchAMD64 {
		s.Counts = append(s.Counts, r.countAMD64()...)
	} else {
		s.Counts = append(s.Counts, r.countARM64()...)
	}
	s.Counts = append(s.Counts, r.countDWARF()...)
	s.Counts = append(s.Counts, Count{"exported names", len(r.exports)})
	for _, p := range r.f.Problems() {
		s.Problems = append(s.Problems, p.Error())
	}
	if r.err != nil {
		s.Problems = append(s.Problems, r.err.Error())
	}
	if r.dwarfErr != nil {
		s.Problems = append(s.Problems, r.dwarfErr.Error())
	}
	if r.dwarf != nil {
		for _, p := range r.dwarf.loadDamage() {
			s.Problems = append(s.Problems, p.Error())
		}
	}
	return s
}

func (r *peReader) countARM64() []Count {
	packed := 0
	for i := range r.entries() {
		if r.f.ARM64().Entry(i).Packed() {
			packed++
		}
	}
	return []Count{{"packed entries", packed}, {"entries with an .xdata record", r.entries() - packed}}
}

// entry describes the entry of the exception directory for an RVA.
func (r *peReader) entry(rva uint32) (*Function, error) {
	if r.arch == context.ArchAMD64 {
		return r.functionAMD64(rva)
	}
	return r.functionARM64(rva)
}

// code disassembles a function, with the effect at each instruction.
func (r *peReader) code(f *Function, effect func(rva uint32) (part, cfa, saved string)) {
	size := min(f.Hi-f.Lo, maxCode)
	code := r.f.Tail(uint32(f.Lo), int(size))
	if uint64(len(code)) < size {
		f.Notes = append(f.Notes, "the code is not all in this file")
	}
	for _, in := range Disassemble(f.Arch, f.Lo, code) {
		l := Line{Addr: in.Addr, Bytes: fmt.Sprintf("%x", in.Bytes), Text: in.Text}
		l.Part, l.CFA, l.Saved = effect(uint32(in.Addr))
		f.Lines = append(f.Lines, l)
	}
}

func (r *peReader) check(c *checker) {
	c.entries = r.entries()
	for _, err := range r.f.Problems() {
		c.add(Malformed, "image", 1, err.Error)
	}
	if r.err != nil {
		c.add(Malformed, "exports", 1, r.err.Error)
	}
	if r.arch == context.ArchAMD64 {
		r.checkAMD64(c)
	} else {
		r.checkARM64(c)
	}
	r.checkDWARF(c)
}

// executable reports whether code may be at rva.
func (r *peReader) executable(rva uint32) bool {
	for _, s := range r.f.Sections() {
		if n := max(s.VirtualSize, s.Size); rva >= s.RVA && rva-s.RVA < n {
			return s.Executable()
		}
	}
	return false
}

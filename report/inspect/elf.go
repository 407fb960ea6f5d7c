package inspect

import (
	"fmt"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/unwind/module"
)

type elfReader struct {
	frames
	path  string
	f     *elf.File
	secs  elf.CFISections
	names *symbol.Table
}

func openELF(path string) (*elfReader, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	return newELF(path, f), nil
}

func newELF(path string, f *elf.File) *elfReader {
	r := &elfReader{path: path, f: f, secs: f.CFISections()}
	r.frames = frames{debug: ".debug_frame", arch: f.Arch(), code: f.BytesAt,
		name: r.name, isCode: r.executable}
	r.table, r.err = cfi.Load(module.CFISections(f, r.secs))
	return r
}

func (r *elfReader) own(v uint64) uint64 { return v }

func (r *elfReader) summary() *Summary {
	s := &Summary{File: r.path, Format: "elf", Arch: r.f.Arch().GOARCH(), ID: r.f.BuildID()}
	add := func(name string, addr uint64, data []byte) {
		if data != nil {
			s.Sections = append(s.Sections, Section{name, addr, uint64(len(data))})
		}
	}
	add(".eh_frame", r.secs.EHFrameAddr, r.secs.EHFrame)
	add(".eh_frame_hdr", r.secs.EHFrameHdrAddr, r.secs.EHFrameHdr)
	add(".debug_frame", r.secs.DebugFrameAddr, r.secs.DebugFrame)
	st := r.table.Stats()
	s.Counts = []Count{{"CIEs", st.CIEs}, {"FDEs", st.FDEs}, {"FDEs of .debug_frame", st.DebugFDEs},
		{"entries of .eh_frame_hdr", st.HeaderSize},
		{"FDEs not in .eh_frame_hdr", st.HeaderMiss}, {"FDEs that overlap", st.Overlapping},
		{"FDEs that cover nothing", st.Empty}}
	for _, err := range r.damage() {
		s.Problems = append(s.Problems, err.Error())
	}
	return s
}

// damage is all that was wrong on the way to the table.
func (r *elfReader) damage() []error {
	out := append([]error(nil), r.f.Problems()...)
	if r.secs.Err != nil {
		out = append(out, r.secs.Err)
	}
	return append(out, r.loadDamage()...)
}

func (r *elfReader) symbol(name string) (uint64, bool) {
	for _, dyn := range []bool{false, true} {
		for s := range r.f.Symbols(dyn) {
			if s.Section != 0 && s.Value != 0 && (s.Name == name || symbol.Demangle(s.Name) == name) {
				return s.Value, true
			}
		}
	}
	return 0, false
}

func (r *elfReader) name(addr uint64) string {
	if r.names == nil {
		r.names = symbol.ELF(r.f, r.path, symbol.DefaultDebugDirs)
	}
	name, off, ok := r.names.Find(addr)
	if !ok {
		return ""
	}
	if off != 0 {
		return fmt.Sprintf("%s+%#x", symbol.Demangle(name), off)
	}
	return symbol.Demangle(name)
}

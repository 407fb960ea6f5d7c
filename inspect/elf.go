package inspect

import (
	"errors"
	"fmt"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/symbol"
)

type elfReader struct {
	path  string
	f     *elf.File
	secs  elf.CFISections
	table *cfi.Table
	err   error // of the table
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
	r.table, r.err = cfi.Load(module.CFISections(f, r.secs))
	return r
}

func (r *elfReader) own(v uint64) uint64 { return v }

func (r *elfReader) summary() *Summary {
	s := &Summary{File: r.path, Format: "elf", Arch: string(elfArch(r.f.Arch())), ID: r.f.BuildID()}
	add := func(name string, addr uint64, data []byte) {
		if data != nil {
			s.Sections = append(s.Sections, Section{name, addr, uint64(len(data))})
		}
	}
	add(".eh_frame", r.secs.EHFrameAddr, r.secs.EHFrame)
	add(".eh_frame_hdr", r.secs.EHFrameHdrAddr, r.secs.EHFrameHdr)
	add(".debug_frame", r.secs.DebugFrameAddr, r.secs.DebugFrame)
	st := r.table.Stats()
	s.Counts = []Count{{"CIEs", st.CIEs}, {"FDEs", st.FDEs}, {"FDEs of .debug_frame", st.DebugFDEs}, {"entries of .eh_frame_hdr", st.HeaderSize},
		{"FDEs not in .eh_frame_hdr", st.HeaderMiss}, {"FDEs that overlap", st.Overlapping}, {"FDEs that cover nothing", st.Empty}}
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
	var load *cfi.LoadError
	if errors.As(r.err, &load) {
		for _, p := range load.Problems {
			out = append(out, p)
		}
	}
	return out
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

func (r *elfReader) function(addr uint64) (*Function, error) {
	fde, why := r.table.Find(addr)
	if why != cfi.None {
		return nil, fmt.Errorf("no FDE covers %#x", addr)
	}
	section := ".eh_frame"
	if fde.DebugFrame {
		section = ".debug_frame"
	}
	f := &Function{Name: r.name(fde.Lo), Lo: fde.Lo, Hi: fde.Hi, Asked: addr, Arch: elfArch(r.f.Arch())}
	f.From = fmt.Sprintf("FDE at offset %#x of %s", fde.Offset, section)
	if fde.Signal {
		f.Notes = append(f.Notes, "signal frame: the frame below it stands at an exact instruction")
	}
	if fde.BKey {
		f.Notes = append(f.Notes, "return addresses are signed with the B key")
	}
	rows := r.rows(&fde, f)
	r.lines(f, rows)
	return f, nil
}

// rowRange is a row as text.
type rowRange struct {
	lo, hi     uint64
	cfa, saved string
}

func (r *elfReader) rows(fde *cfi.FDE, f *Function) []rowRange {
	var m cfi.Machine
	var row cfi.Row
	var out []rowRange
	why := m.Rows(r.table, fde, &row, func(row *cfi.Row) bool {
		x := rowRange{lo: row.Lo, hi: row.Hi}
		x.cfa, x.saved = RowText(r.table.Arch(), row)
		out = append(out, x)
		f.Data = append(f.Data, fmt.Sprintf("%x-%x  cfa %-10s %s", x.lo, x.hi, x.cfa, x.saved))
		return true
	})
	if why != cfi.None {
		f.Notes = append(f.Notes, "the program ends early: "+why.String())
	}
	return out
}

// maxCode bounds what of one function is disassembled, bytes.
const maxCode = 1 << 20

func (r *elfReader) lines(f *Function, rows []rowRange) {
	size := min(f.Hi-f.Lo, maxCode)
	code, ok := r.f.BytesAt(f.Lo, int(size))
	if !ok {
		f.Notes = append(f.Notes, "the code is not in this file")
		return
	}
	i := 0
	for _, in := range Disassemble(f.Arch, f.Lo, code) {
		for i < len(rows) && in.Addr >= rows[i].hi {
			i++
		}
		l := Line{Addr: in.Addr, Bytes: fmt.Sprintf("%x", in.Bytes), Text: in.Text}
		if i < len(rows) && in.Addr >= rows[i].lo {
			l.CFA, l.Saved = rows[i].cfa, rows[i].saved
		}
		f.Lines = append(f.Lines, l)
	}
}

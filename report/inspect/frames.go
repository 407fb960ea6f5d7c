package inspect

import (
	"errors"
	"fmt"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
)

// frames holds the call frame information of an ELF or PE image, and the image's code and names for display.
// A PE image's records contain addresses at its preferred base; the output shows RVAs.
type frames struct {
	table  *cfi.Table
	err    error  // of the table
	base   uint64 // subtracted from the table's addresses for the output
	debug  string // the name of the section .debug_frame was read from
	arch   context.Arch
	code   func(addr uint64, n int) ([]byte, bool)
	name   func(addr uint64) string
	isCode func(addr uint64) bool
}

// loadDamage returns the damage in the records.
func (r *frames) loadDamage() (out []error) {
	var load *cfi.LoadError
	if errors.As(r.err, &load) {
		for _, p := range load.Problems {
			out = append(out, p)
		}
	}
	return out
}

// function describes the FDE that covers addr, which is an address of the output.
func (r *frames) function(addr uint64) (*Function, error) {
	fde, why := r.table.Find(addr + r.base)
	if why != cfi.None {
		return nil, fmt.Errorf("no FDE covers %#x", addr)
	}
	section := ".eh_frame"
	if fde.DebugFrame {
		section = r.debug
	}
	f := &Function{Name: r.name(fde.Lo - r.base), Lo: fde.Lo - r.base,
		Hi: fde.Hi - r.base, Asked: addr, Arch: r.arch}
	f.From = fmt.Sprintf("FDE at offset %#x of %s", fde.Offset, section)
	if fde.Signal {
		f.Notes = append(f.Notes, "signal frame: its caller was interrupted and is at an exact instruction")
	}
	if fde.BKey {
		f.Notes = append(f.Notes, "return addresses are signed with the B key")
	}
	r.lines(f, r.rows(&fde, f))
	return f, nil
}

// rowRange is a row as text.
type rowRange struct {
	lo, hi     uint64
	cfa, saved string
}

func (r *frames) rows(fde *cfi.FDE, f *Function) []rowRange {
	var m cfi.Machine
	var row cfi.Row
	var out []rowRange
	why := m.Rows(r.table, fde, &row, func(row *cfi.Row) bool {
		x := rowRange{lo: row.Lo - r.base, hi: row.Hi - r.base}
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

// maxCode bounds the disassembled bytes of one function.
const maxCode = 1 << 20

func (r *frames) lines(f *Function, rows []rowRange) {
	size := min(f.Hi-f.Lo, maxCode)
	code, ok := r.code(f.Lo, int(size))
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

package inspect

import (
	"fmt"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// peFrames are the DWARF sections of a PE image: those of the GNU and LLVM
// compilers for Windows, and Go's.
type peFrames struct {
	frames
}

// framesPE loads the DWARF sections like package module, so that the output shows what the
// walkers use. It returns nil if the image has none.
func framesPE(r *peReader) (*peFrames, error) {
	d := &peFrames{frames: frames{base: r.f.ImageBase(), debug: ".debug_frame", arch: r.arch}}
	d.code = func(rva uint64, n int) ([]byte, bool) { return r.f.BytesAt(uint32(rva), n) }
	d.name = func(rva uint64) string { return r.name(uint32(rva)) }
	d.isCode = func(rva uint64) bool { return rva <= 1<<32-1 && r.executable(uint32(rva)) }
	m := module.PEFromFile(0, r.f, r.path, 0, 0)
	d.table, d.err = m.CFI, m.Err
	if dwarf := r.f.DWARF(); dwarf.Compressed {
		d.debug = ".zdebug_frame"
	} else if dwarf.Err != nil {
		return nil, dwarf.Err
	}
	if d.table == nil && len(d.loadDamage()) == 0 {
		return nil, nil
	}
	if d.table == nil {
		d.table, _ = cfi.Load(cfi.Sections{Arch: r.arch})
	}
	return d, nil
}

// function describes an address according to the exception directory and to the DWARF sections,
// and reports which of them the walkers use.
func (r *peReader) function(addr uint64) (*Function, error) {
	if addr > 1<<32-1 {
		return nil, fmt.Errorf("%#x is not an RVA", addr)
	}
	own, err := r.entry(uint32(addr))
	if r.dwarf == nil {
		return own, err
	}
	also, missing := r.dwarf.function(addr)
	switch {
	case missing == nil && err == nil:
		own.Governs, own.Also = "the exception directory", also
	case missing == nil:
		also.Governs = "the FDE; no entry of the exception directory covers this address"
		return also, nil
	case err == nil:
		own.Governs = "the exception directory; no FDE covers this address"
	default:
		err = fmt.Errorf("%w; %w", err, missing)
	}
	return own, err
}

// covered reports whether an entry of the exception directory covers an RVA.
func (r *peReader) covered(rva uint32) bool {
	if r.arch == context.ArchAMD64 {
		_, ok := r.f.AMD64().Lookup(rva)
		return ok
	}
	var buf pearm64.Buffer
	var info pearm64.Info
	_, ok, _ := r.f.ARM64().Find(rva, &buf, &info)
	return ok
}

// alone counts the FDEs for code that the exception directory does not cover.
func (d *peFrames) alone(r *peReader) (n int) {
	d.table.Each(func(f cfi.FDE) bool {
		if rva := f.Lo - d.base; rva <= 1<<32-1 && !r.covered(uint32(rva)) {
			n++
		}
		return true
	})
	return n
}

// countDWARF are the figures of the summary.
func (r *peReader) countDWARF() []Count {
	if r.dwarf == nil {
		return nil
	}
	st := r.dwarf.table.Stats()
	return []Count{{"FDEs of .eh_frame", st.FDEs - st.DebugFDEs}, {"FDEs of " + r.dwarf.debug, st.DebugFDEs},
		{"FDEs of what no entry covers", r.dwarf.alone(r)}}
}

// checkDWARF checks every FDE.
func (r *peReader) checkDWARF(c *checker) {
	if r.dwarfErr != nil {
		c.add(Malformed, "section", 1, r.dwarfErr.Error)
	}
	if r.dwarf == nil {
		return
	}
	r.dwarf.check(c)
	n := r.dwarf.alone(r)
	c.add(Remark, "FDEs that govern: no entry of the exception directory covers their begin", n, nil)
}

package inspect

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
)

// peFrames are the DWARF sections of a PE image: those of the GNU and LLVM
// compilers for Windows, and Go's.
type peFrames struct {
	frames
	packed bool // of .zdebug_frame, which package module does not load
}

// framesPE loads them as package module does, so that what is shown is what is
// walked by; nil if the image has none.
func framesPE(r *peReader) (*peFrames, error) {
	d := &peFrames{frames: frames{base: r.f.ImageBase(), debug: ".debug_frame", arch: Arch(r.arch.String())}}
	d.code = func(rva uint64, n int) ([]byte, bool) { return r.f.BytesAt(uint32(rva), n) }
	d.name = func(rva uint64) string { return r.name(uint32(rva)) }
	d.isCode = func(rva uint64) bool { return rva <= 1<<32-1 && r.executable(uint32(rva)) }
	m := module.PEFromFile(0, r.f, r.path, 0, 0)
	d.table, d.err = m.CFI, m.Err
	if d.table != nil || len(d.loadDamage()) > 0 {
		if d.table == nil {
			d.table, _ = cfi.Load(cfi.Sections{Arch: r.cfiArch()})
		}
		return d, nil
	}
	return d.zdebug(r)
}

func (r *peReader) cfiArch() cfi.Arch {
	if r.arch == pe.ARM64 {
		return cfi.ARM64
	}
	return cfi.AMD64
}

// zdebug loads .zdebug_frame, as Go's linker writes it.
func (d *peFrames) zdebug(r *peReader) (*peFrames, error) {
	const name = ".zdebug_frame"
	s := r.f.Section(name)
	if s == nil {
		return nil, nil
	}
	data, err := expandGNU(r.f.Tail(s.RVA, int(max(s.VirtualSize, s.Size))))
	if err != nil {
		return nil, fmt.Errorf("%s: %s at %#x: %w", r.path, name, s.RVA, err)
	}
	d.debug, d.packed = name, true
	d.table, d.err = cfi.Load(cfi.Sections{Arch: r.cfiArch(), DebugFrame: data})
	return d, nil
}

// maxExpanded bounds what a compressed section may grow to, bytes.
const maxExpanded = 1 << 28

// expandGNU reads "ZLIB", a big-endian size and a zlib stream. Memory grows
// with what is there, not with what the size claims.
func expandGNU(raw []byte) ([]byte, error) {
	if len(raw) < 12 || string(raw[:4]) != "ZLIB" {
		return nil, errors.New("does not start with ZLIB and a size")
	}
	size := binary.BigEndian.Uint64(raw[4:])
	if size > maxExpanded {
		return nil, fmt.Errorf("expands to %d bytes, more than is read", size)
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[12:]))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(z, int64(size)+1))
	if err == nil && uint64(n) != size {
		err = fmt.Errorf("does not expand to its stated %d bytes", size)
	}
	return out.Bytes(), err
}

// function describes what the exception directory and what the DWARF sections
// say of an address, and which of them the walkers go by.
func (r *peReader) function(addr uint64) (*Function, error) {
	if addr > 1<<32-1 {
		return nil, fmt.Errorf("%#x is no RVA", addr)
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
		also.Governs = r.withoutEntry()
		return also, nil
	case err == nil:
		own.Governs = "the exception directory; no FDE covers this address"
	default:
		err = fmt.Errorf("%w; %w", err, missing)
	}
	return own, err
}

// withoutEntry says what governs where there is an FDE and no entry.
func (r *peReader) withoutEntry() string {
	switch {
	case r.dwarf.packed:
		return "no unwind data: no entry of the exception directory covers this address, and compressed sections are not loaded"
	case r.arch == pe.ARM64:
		return "no unwind data: no entry of the exception directory covers this address, and ARM64 PE images are not walked by DWARF"
	}
	return "the FDE; no entry of the exception directory covers this address"
}

// covered reports whether an entry of the exception directory covers an RVA.
func (r *peReader) covered(rva uint32) bool {
	if r.arch == pe.AMD64 {
		_, ok := r.f.LookupAMD64(rva)
		return ok
	}
	var buf pe.ARM64Buffer
	_, _, ok, _ := r.f.ARM64Info(rva, &buf)
	return ok
}

// alone counts the FDEs that describe what the exception directory does not.
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
	if r.dwarf.packed || r.arch == pe.ARM64 {
		c.add(Remark, "FDEs that no entry of the exception directory covers, and that are not walked by", n, nil)
		return
	}
	c.add(Remark, "FDEs that govern: no entry of the exception directory covers their begin", n, nil)
}

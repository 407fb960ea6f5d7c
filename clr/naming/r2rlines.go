package naming

import (
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/metadata"
)

// Sources: dotnet/runtime src/coreclr/vm/readytoruninfo.cpp, GetDebugInfo;
// src/coreclr/vm/debuginfostore.cpp, RestoreBoundsAndVars.

const (
	r2rDebug     = 105
	maxDebugInfo = 64 << 20 // bytes of the section of one image
	formatTries  = 256      // methods used to detect the format of an image's boundaries
)

// debugSection is the debugging information of a precompiled image. It is read for the first requested line,
// and cached.
type debugSection struct {
	at     uint64 // in the process
	size   int
	packed bool // boundaries have the format of .NET 10
	seen   bool
	b      []byte
}

// PrecompiledPlace returns the source position of the code at an address of the image at base. Images without
// a Portable PDB have no lines, and their tables are not read.
func (n *Images) PrecompiledPlace(base, addr uint64) (p metadata.Place, ok bool) {
	im := n.image(base, "")
	if im.r2r == nil || n.pdb(im) == nil {
		return p, false
	}
	begin, s, ok := im.r2r.find(addr)
	if !ok || s.rid == 0 {
		return p, false
	}
	il, ok := contract.ILAt(n.bounds(im.r2r, s.index), uint32(addr-begin))
	if !ok {
		return p, false
	}
	return n.place(im, int(s.rid), il)
}

// bounds returns the boundaries of the method with a RUNTIME_FUNCTION index; nil if it has none, or they are
// malformed.
func (n *Images) bounds(p *precompiled, index int32) []contract.Bound {
	if d := &p.debug; !d.seen {
		d.seen = true
		if d.size > 0 && d.size <= maxDebugInfo {
			d.b, _ = n.bytes(d.at, d.size)
		}
		p.format()
	}
	return p.decode(index)
}

// format detects the format of boundaries: those of a method begin with its prolog. If neither format
// matches, the image has no lines.
func (p *precompiled) format() {
	for _, p.debug.packed = range []bool{false, true} {
		tried, right := 0, 0
		for i := 0; i < len(p.starts) && tried < formatTries; i++ {
			if all := p.decode(p.starts[i].index); len(all) > 0 {
				tried++
				if all[0].Native == 0 && all[0].IL == contract.Prolog {
					right++
				}
			}
		}
		if right > 0 && right*10 >= tried*9 {
			return
		}
	}
	p.debug.b = nil
}

func (p *precompiled) decode(index int32) []contract.Bound {
	d := &p.debug
	r := native32{b: d.b}
	head, base, ok := r.unsigned(0)
	if !ok || index < 0 || uint32(index) >= head>>2 {
		return nil
	}
	at, ok := r.element(base, head&3, uint32(index))
	if !ok {
		return nil
	}
	// Methods with the same information share it: the number is then the distance back to it.
	back, info, ok := r.unsigned(at)
	if !ok || back > at {
		return nil
	}
	if back != 0 {
		info = at - back
	}
	return contract.DecodeInfo(d.b[min(int(info), len(d.b)):], d.packed)
}

// debugOf locates the section of an image.
func debugOf(h *header, dir directory) debugSection {
	return debugSection{at: h.at(dir.rva), size: int(dir.size)}
}

package contract

import "encoding/binary"

// directory is where an image's RUNTIME_FUNCTIONs are.
type directory struct {
	at uint64
	n  int
}

// PE header facts (Microsoft, "PE Format").
const (
	machineUnix    = 0xfd1d // x86-64 for Linux: 0x8664 ^ 0x7b79
	machineWindows = 0x8664
	magicPE32Plus  = 0x20b
	exceptionDir   = 112 + 3*8 // from the optional header
	maxImages      = 1 << 12
	maxFunctions   = 1 << 24
	maxLfanew      = 1 << 16
)

// precompiled finds a method of a ReadyToRun image by its exception directory.
func (t *Tables) precompiled(ip uint64, s *section, e *located) Reason {
	d, ok := t.images[s.begin]
	if !ok {
		var r Reason
		if d, r = t.directory(s.begin); r != Found {
			return r
		}
		if len(t.images) >= maxImages || s.collectible {
			clear(t.images)
		}
		t.images[s.begin] = d
	}
	e.Kind = R2R
	r := t.choose(ip, d.at, d.n, e)
	e.Funclet = 0
	if r == NoMethod {
		e.Kind, e.Stub, e.Begin, e.End = Stub, StubImageSection, s.begin, s.end
		return Found
	}
	return r
}

// directory reads the headers of the mapped image at base.
func (t *Tables) directory(base uint64) (d directory, r Reason) {
	lfanew, ok := t.v.u32(base + 0x3c)
	if !ok {
		return d, Unreadable
	}
	if lfanew > maxLfanew {
		return d, Malformed
	}
	b, ok := t.v.bytes(base+uint64(lfanew), 24+exceptionDir+8)
	if !ok {
		return d, Unreadable
	}
	le := binary.LittleEndian
	machine, magic := le.Uint16(b[4:]), le.Uint16(b[24:])
	dirs := le.Uint32(b[24+108:])
	rva, size := le.Uint32(b[24+exceptionDir:]), le.Uint32(b[24+exceptionDir+4:])
	switch {
	case string(b[:4]) != "PE\x00\x00" || magic != magicPE32Plus || dirs < 4:
		return d, Malformed
	case machine != machineUnix && machine != machineWindows:
		return d, Unsupported
	case size/functionSize > maxFunctions || rva == 0:
		return d, Malformed
	}
	return directory{base + uint64(rva), int(size / functionSize)}, Found
}

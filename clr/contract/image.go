package contract

import (
	"github.com/seedwalk/seedwalk/pe"
)

// directory locates an image's RUNTIME_FUNCTIONs.
type directory struct {
	at uint64
	n  int
}

// Bounds of the cached images.
const (
	maxImages    = 1 << 12
	maxFunctions = 1 << 24
)

// precompiled finds a method of a ReadyToRun image by its exception directory. Code outside all
// functions is a stub.
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
	readable := true
	h, err := pe.ReadHeader(func(rva uint32, n int) ([]byte, bool) {
		b, ok := t.v.bytes(base+uint64(rva), n)
		readable = readable && ok
		return b, ok
	}, "")
	arch, _ := h.Arch()
	rva, size := h.Exceptions()
	switch {
	case !readable:
		return d, Unreadable
	case err != nil:
		return d, Malformed
	case arch != t.arch:
		return d, Unsupported
	case size/functionSize(arch) > maxFunctions || rva == 0:
		return d, Malformed
	}
	return directory{base + uint64(rva), int(size / functionSize(arch))}, Found
}

package contract

import (
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

var _ managed.Source = (*Tables)(nil)

// kindOf maps the runtime's kinds of stubs that need special steps to managed's.
var kindOf = map[StubKind]managed.Kind{StubVSDResolve: managed.Resolve, StubImageSection: managed.Thunk}

// Code implements managed.Source. Lookups take the ip itself: see the package
// comment.
func (t *Tables) Code(at unwind.Address, c *managed.Code) unwind.Stop {
	e, reason := t.locate(at.IP)
	switch reason {
	case Found:
	case NotCode, NoMethod:
		*c = managed.Code{Kind: managed.Uncharted}
		return unwind.StopNone
	case Malformed:
		return unwind.BadInfo
	case Unsupported:
		return unwind.Unsupported
	default:
		return unwind.NoInfo
	}
	*c = managed.Code{Base: e.Base, Keep: e.keep()}
	if e.Kind == Stub {
		c.Kind = managed.Stub
		if k, ok := kindOf[e.Stub]; ok {
			c.Kind = k
		}
		return unwind.StopNone
	}
	if !at.Exact && t.replacedAt(e, at.IP) {
		return unwind.NoInfo
	}
	c.Function = e.Function()
	if begin := uint32(e.Begin - e.Base); t.arch == context.ArchARM64 {
		c.EntryARM64 = arm64.RuntimeFunction{Begin: begin, Data: e.UnwindRVA}
	} else {
		c.Entry = amd64.RuntimeFunction{Begin: begin, End: uint32(e.End - e.Base), Unwind: e.UnwindRVA}
	}
	return unwind.StopNone
}

// replacedAt reports whether a return address is in volatile code but follows no call. The method that called
// has been freed, and another one has taken its place.
func (t *Tables) replacedAt(e *located, ra uint64) bool { return e.Volatile && !t.Call(ra) }

// ReadAt implements managed.Source.
func (t *Tables) ReadAt(p []byte, addr uint64) bool { return t.v.r.ReadAt(p, addr) }

// Arch implements managed.Source.
func (t *Tables) Arch() context.Arch { return t.arch }

// Unix implements managed.Source.
func (t *Tables) Unix() bool { return !t.windows }

// Call reports whether ra follows a near call instruction. Only then can it be a return address.
func (t *Tables) Call(ra uint64) bool {
	b, ok := t.v.bytes(ra-nearcall.Longest, nearcall.Longest)
	if t.arch == context.ArchARM64 {
		return ok && ra&3 == 0 && nearcall.ARM64(b)
	}
	return ok && nearcall.AMD64(b)
}

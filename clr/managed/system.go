package managed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// Image is a precompiled managed image that is mapped.
type Image struct {
	Base  uint64
	Table *peamd64.Table
}

// Calls are a System's calls of its operating system. They are made while nothing is suspended: the system's
// tables have a lock that a suspended thread may own.
type Calls interface {
	// FunctionEntry copies the RUNTIME_FUNCTION that is registered for an address, and returns the base of
	// its RVAs. Source: Win32 RtlLookupFunctionEntry.
	FunctionEntry(pc uint64, entry []byte) (base uint64, ok bool)
	// Precompiled returns the managed image that contains an address.
	Precompiled(pc uint64) (Image, bool)
	memory.Reader
}

// System is a Source over Windows' function tables, where the CLR registers jitted code, and over precompiled
// images. Its answers are valid until the modules change: see Tables.Forget.
type System struct{ Calls }

// Code implements Source.
func (s System) Code(at unwind.Address, c *Code) unwind.Stop {
	pc := at.Lookup()
	if im, ok := s.Precompiled(pc); ok {
		*c = im.code(pc)
		return unwind.StopNone
	}
	*c = Code{Kind: Uncharted}
	entry := make([]byte, peamd64.EntrySize)
	base, ok := s.FunctionEntry(pc, entry)
	if fn := peamd64.ReadEntry(entry); ok && pc-base == uint64(uint32(pc-base)) &&
		fn.Contains(uint32(pc-base)) && fn.Unwind&3 == 0 {
		*c = Code{Kind: Method, Base: base, Entry: fn, Keep: true}
	}
	return unwind.StopNone
}

// code looks up an address in an image's exception directory.
func (im *Image) code(pc uint64) Code {
	entry, ok := im.Table.Lookup(uint32(pc - im.Base))
	if !ok {
		return Code{Kind: Thunk}
	}
	fn, why := im.Table.Resolve(entry)
	if why != peamd64.OK {
		return Code{Kind: Thunk}
	}
	return Code{Kind: Method, Base: im.Base, Entry: fn, Table: im.Table, Keep: true}
}

// Arch implements Source.
func (s System) Arch() context.Arch { return context.ArchAMD64 }

// Unix implements Source.
func (s System) Unix() bool { return false }

package context

import "fmt"

// Layout names a register CONTEXT in memory.
type Layout uint8

const (
	Win32AMD64    Layout = iota // struct CONTEXT of winnt.h, x64
	PALAMD64                    // the CLR's on Linux: Win32's as its prefix
	UContextAMD64               // Linux ucontext_t, as a signal handler gets it
	PRStatusAMD64               // Linux struct elf_prstatus of a core file's NT_PRSTATUS
	UserRegsAMD64               // Linux user_regs_struct, as PTRACE_GETREGSET gives it
	Win32ARM64                  // struct CONTEXT of winnt.h, ARM64
	PALARM64                    // the CLR's on Linux: Win32's as its prefix
	UContextARM64               // Linux ucontext_t, its extension records behind it
	PRStatusARM64               // Linux struct elf_prstatus of a core file's NT_PRSTATUS
	UserRegsARM64               // Linux user_pt_regs, as PTRACE_GETREGSET gives it

	lastAMD64Layout = UserRegsAMD64
	lastLayout      = UserRegsARM64
)

// SizeError says that a context is shorter than its layout.
type SizeError struct {
	Layout    Layout
	Have, Min int // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: %d bytes given, at least %d needed", e.Layout, e.Have, e.Min)
}

// ArchError says that a layout is not one of the architecture asked for.
type ArchError struct {
	Layout Layout
	Arch   string // "x86-64" or "ARM64"
}

func (e *ArchError) Error() string { return fmt.Sprintf("%s is not a layout of %s", e.Layout, e.Arch) }

func (l Layout) String() string {
	switch {
	case l <= lastAMD64Layout:
		return amd64Layouts[l].name
	case l <= lastLayout:
		return arm64Layouts[l-Win32ARM64].name
	}
	return "unknown CONTEXT layout"
}

// Size is the smallest size of a context of this layout, in bytes; 0 for an
// unknown layout. The CLR's own grow with its version: take the size it says.
func (l Layout) Size() int {
	switch {
	case l <= lastAMD64Layout:
		return amd64Layouts[l].size
	case l <= lastLayout:
		return arm64Layouts[l-Win32ARM64].size
	}
	return 0
}

// check reports whether n bytes can hold a context of layout l, which must be
// one of those from first to last.
func (l Layout) check(first, last Layout, arch string, n int) error {
	switch size := l.Size(); {
	case l < first || l > last:
		return &ArchError{l, arch}
	case n < size:
		return &SizeError{l, n, size}
	}
	return nil
}

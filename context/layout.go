package context

import "fmt"

// Layout identifies a register CONTEXT in memory.
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

// SizeError means that a context is shorter than its layout.
type SizeError struct {
	Layout    Layout
	Have, Min int // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: %d bytes given, at least %d needed", e.Layout, e.Have, e.Min)
}

// ArchError means that registers do not match a layout's architecture, or that the layout is unknown.
type ArchError struct {
	Layout Layout
	Arch   Arch // of the registers
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

// Size returns the smallest size of a context of this layout, in bytes; 0 for an unknown layout. The CLR's
// contexts grow with its version: use the size that it reports.
func (l Layout) Size() int {
	switch {
	case l <= lastAMD64Layout:
		return amd64Layouts[l].size
	case l <= lastLayout:
		return arm64Layouts[l-Win32ARM64].size
	}
	return 0
}

// Arch returns the architecture whose registers the layout holds, NoArch if the layout is unknown.
func (l Layout) Arch() Arch {
	switch {
	case l <= lastAMD64Layout:
		return ArchAMD64
	case l <= lastLayout:
		return ArchARM64
	}
	return NoArch
}

// check reports whether n bytes can hold a context of layout l, which must be of architecture a.
func (l Layout) check(a Arch, n int) error {
	switch size := l.Size(); {
	case a == NoArch || l.Arch() != a:
		return &ArchError{l, a}
	case n < size:
		return &SizeError{l, n, size}
	}
	return nil
}

// Read reads the registers of a context. Registers that the layout lacks stay unknown. ContextFlags is
// ignored: the CLR leaves it 0 in its contexts. The error is a *SizeError or, for an unknown layout, an
// *ArchError.
func Read(l Layout, b []byte) (r Registers, err error) {
	err = r.Read(l, b)
	return r, err
}

// Read sets r from a context, like the function Read, without copying. It leaves the other architecture's
// member unchanged; after an error, all of r.
func (r *Registers) Read(l Layout, b []byte) error {
	if err := l.check(l.Arch(), len(b)); err != nil {
		return err
	}
	switch r.Arch = l.Arch(); r.Arch {
	case ArchAMD64:
		amd64Layouts[l].read(b, &r.AMD64)
	case ArchARM64:
		arm64Layouts[l-Win32ARM64].read(b, &r.ARM64)
	}
	return nil
}

// Write writes the known registers of r into a context and leaves every other byte unchanged, including the
// upper halves of ARM64's vector registers. It also sets ContextFlags, which marks what a reader may use. The
// error is a *SizeError or an *ArchError.
func Write(l Layout, b []byte, r *Registers) error {
	if err := l.check(r.Arch, len(b)); err != nil {
		return err
	}
	switch r.Arch {
	case ArchAMD64:
		amd64Layouts[l].write(b, &r.AMD64)
	case ArchARM64:
		arm64Layouts[l-Win32ARM64].write(b, &r.ARM64)
	}
	return nil
}

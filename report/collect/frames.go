package collect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/unwind"
)

// Namer names native code. Build calls it from one goroutine. addr is the image's own address
// (the mapped one minus the module's bias). The path [jit PID] names code that a process
// compiled at run time; addr is then the mapped one. Name returns false if no symbol covers addr.
type Namer interface {
	Name(path, buildID string, addr uint64) (name string, ok bool)

	// Function returns the range of the function that holds addr, so that a function
	// without a name is one function and not one per address.
	Function(path, buildID string, addr uint64) (start, end uint64, ok bool)
}

// Liner is a Namer that knows places in the source of native code; file is "" if it does not know one.
type Liner interface {
	Line(path, buildID string, addr uint64) (file string, line int)
}

func (b *builder) frame(p *Process, k *frameKey, single int32) export.Frame {
	if k.kernel {
		return export.Frame{Name: export.Kernel, ModuleIndex: -1, Class: export.ClassKernel}
	}
	f := export.Frame{ModuleIndex: -1, Addr: k.addr, Doubtful: k.doubtful}
	if k.module >= 0 {
		f.ModuleIndex = b.modules + k.module
		f.Module = base(p.modules[k.module].Path)
	}
	switch k.kind {
	case unwind.KindManaged:
		f.Class = export.ClassManaged
		f.Name, f.Module = p.managedName(k, f.Module)
		if k.place > 0 {
			f.File, f.Line = p.places[k.place-1].file, int(p.places[k.place-1].line)
		}
	case unwind.KindAsync:
		f.Class = export.ClassAsync
		f.Name, f.Module = p.managedName(k, f.Module)
	case unwind.KindStub:
		f.Class = export.ClassStub
		f.Name = b.stubName(p, k)
	case unwind.KindJIT:
		f.Class, f.Module = export.ClassNative, "[other JIT]"
		f.Name = b.jitName(p, k.addr)
	case unwind.KindGap:
		f.Class, f.Name = export.ClassGap, p.gapName(k.gap)
	default:
		f.Class = export.ClassNative
		if k.module >= 0 && (k.module == single || isRuntime(f.Module)) {
			f.Class = export.ClassRuntime
		}
		f.Name = b.nativeName(p, k)
		if n, ok := b.namer.(Liner); ok && k.module >= 0 {
			m := &p.modules[k.module]
			f.File, f.Line = n.Line(m.Path, m.BuildID, k.addr-m.Bias)
		}
		if k.kind == unwind.KindSignal {
			f.Name = signalMark + f.Name // as debuggers mark it: its caller was interrupted
		}
	}
	if k.resumer {
		f.Class = export.ClassResumer
	}
	return f
}

// base is a path's last part, "" for an empty path.
func base(path string) string {
	if path == "" {
		return ""
	}
	return export.Base(path)
}

// assembly returns the name of an assembly from its path or its name. Methods of the same assembly
// may have either, depending on whether its path was known when a method was seen first.
func assembly(path string) string {
	name := base(path)
	for _, ext := range [...]string{".dll", ".exe"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// managedName returns a method's name and assembly, or a number or an address if its name is unknown.
func (p *Process) managedName(k *frameKey, module string) (string, string) {
	if m := p.methods[k.method]; m != nil && k.method != 0 {
		return m.Name, assembly(m.Module)
	}
	if k.method != 0 {
		return fmt.Sprintf("method-%d", k.method), module
	}
	return fmt.Sprintf("managed code at %#x", k.addr), module
}

// stubName returns the name that the sender gave, or the native name if the stub is in an image. Other
// stubs share one name.
func (b *builder) stubName(p *Process, k *frameKey) string {
	if m := p.methods[k.method]; m != nil && k.method != 0 {
		return m.Name
	}
	if k.module >= 0 {
		return b.nativeName(p, k)
	}
	return "stub of the CLR"
}

// jitName names code of another code generator than the CLR. Code without a name is one row.
func (b *builder) jitName(p *Process, addr uint64) string {
	if b.namer != nil {
		if name, ok := b.namer.Name(fmt.Sprintf("[jit %d]", p.PID), "", addr); ok {
			return name
		}
	}
	return "unnamed JIT code"
}

// nativeName asks the Namer. Without a name it returns module+0xoffset: the offset of the function's
// start if that is known, else that of the address. Outside all modules it returns the address.
func (b *builder) nativeName(p *Process, k *frameKey) string {
	if k.module < 0 {
		return fmt.Sprintf("unknown code at %#x", k.addr)
	}
	m := &p.modules[k.module]
	at := k.addr - m.Bias
	if b.namer != nil {
		if name, ok := b.namer.Name(m.Path, m.BuildID, at); ok {
			return name
		}
		if start, _, ok := b.namer.Function(m.Path, m.BuildID, at); ok {
			at = start
		}
	}
	return fmt.Sprintf("%s+%#x", export.Base(m.Path), at)
}

// runtimeLibraries are prefixes of the .NET runtime's native libraries.
var runtimeLibraries = []string{"coreclr.", "clrjit.", "clrgc.", "hostfxr.", "hostpolicy.", "mscordac",
	"mscordbi", "libcoreclr", "libclrjit", "libclrgc", "libhostfxr", "libhostpolicy",
	"libSystem.", "libmscordac", "libmscordbi"}

func isRuntime(base string) bool {
	return slices.ContainsFunc(runtimeLibraries, func(p string) bool { return strings.HasPrefix(base, p) })
}

// singleFile returns the module that holds the runtime in a single-file program: the first one that
// is named like an executable, if there is no coreclr. -1 = none.
func (p *Process) singleFile() int32 {
	exe := int32(-1)
	for i := range p.modules {
		base := export.Base(p.modules[i].Path)
		if strings.HasPrefix(strings.TrimPrefix(strings.ToLower(base), "lib"), "coreclr.") {
			return -1
		}
		if exe < 0 && !strings.Contains(base, ".so") && !strings.HasPrefix(base, "[") &&
			!strings.HasSuffix(base, ".dll") {
			exe = int32(i)
		}
	}
	return exe
}

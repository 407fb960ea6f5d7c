package managed

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

// HijackStub is the return-hijack stub of one or more releases. A new release whose stub begins differently
// needs one more row here.
type HijackStub struct {
	System   string // as in GOOS
	Releases string // of .NET
	Source   string // in dotnet/runtime src/coreclr/vm
	unwind.ReturnHook
}

// HijackStubs are the known stubs. The stub of .NET Core 2.0 to 3.1 for Windows needs no row: it pushes
// nothing before rax, and its unwind data are right.
var HijackStubs = []HijackStub{
	{
		System: "linux", Releases: "9.0 to 10.0", Source: "amd64/asmhelpers.S, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{
			Arch: context.ArchAMD64,
			// push rax, which makes room for the return address; push rbp, rbx, r15, r14, r13, r12. No
			// compiler saves rax first.
			Code: []byte{0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54},
			// The unwind rules assume a called function: the true return address is the first pushed word.
			Off: -8,
		},
	},
	{
		// A stub that begins differently has its return address in the same place, if it makes room for it
		// first.
		System: "linux", Releases: "others", Source: "amd64/asmhelpers.S, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{Arch: context.ArchAMD64, Off: -8},
	},
	{
		System: "linux", Releases: "10.0", Source: "arm64/asmhelpers.S, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{
			Arch: context.ArchARM64,
			// stp x29, x30, [sp, #-192]!, which is HijackArgs' size; mov x29, sp; stp of x19 to x28, and of
			// x0 and x1, which hold a method's results. Other functions with this frame size do not save x0.
			Code: []byte{
				0xfd, 0x7b, 0xb4, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0xf3, 0x53,
				0x01, 0xa9, 0xf5, 0x5b, 0x02, 0xa9,
				0xf7, 0x63, 0x03, 0xa9, 0xf9, 0x6b, 0x04, 0xa9, 0xfb, 0x73,
				0x05, 0xa9, 0xe0, 0x07, 0x06, 0xa9,
			},
			// The unwind data are right: the runtime writes the true return address into the frame record.
		},
	},
	{
		System: "windows", Releases: "10.0", Source: "amd64/asmhelpers.asm, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{
			Arch: context.ArchAMD64, PE: true,
			// mov rdx, rsp; push rax, which makes room for the return address; push rdx; push r15.
			Code: []byte{0x48, 0x8b, 0xd4, 0x50, 0x52, 0x41, 0x57},
			// The unwind data omit both pushes, so they take the word of rdx. The stub calls the runtime,
			// which writes the return address first of all. Before that, no walk can leave the stub.
			Off: 8, Late: true,
		},
	},
}

// FindHijackStub finds a hijack stub in an ELF module. code is the module's code from its Start on. It
// returns the address of a function that begins like one of HijackStubs, or 0.
func FindHijackStub(m *module.Module, code []byte) uint64 {
	if m.CFI == nil {
		return 0
	}
	for i := range HijackStubs {
		h := &HijackStubs[i]
		if h.Arch != m.CFI.Arch() || h.PE || len(h.Code) == 0 {
			continue
		}
		if r := findFunction(m, code, h.Code); r.Start != 0 {
			return r.Start
		}
	}
	return 0
}

// findFunction returns the function of an ELF module that begins with some bytes, an empty range if there is
// none.
func findFunction(m *module.Module, code, begin []byte) memory.Range {
	for from := 0; ; {
		j := bytes.Index(code[from:], begin)
		if j < 0 {
			return memory.Range{}
		}
		at := m.Start + uint64(from+j) - m.Bias
		if fde, why := m.CFI.Find(at); why == cfi.None && fde.Lo == at {
			return memory.Range{Start: fde.Lo + m.Bias, End: fde.Hi + m.Bias}
		}
		from += j + 1
	}
}

// restoreBegin and restoreEnd are the first and the last bytes of ClrRestoreNonvolatileContextWorker. With
// this function, the runtime continues after a catch block. Source: dotnet/runtime
// src/coreclr/vm/amd64/Context.S, and libcoreclr.so 9.0.5 and 10.0.9.
var (
	// push rbp; mov r10, rdi; mov r11, rsi; test byte ptr [r10+48], CONTEXT_INTEGER
	restoreBegin = []byte{0x55, 0x49, 0x89, 0xfa, 0x49, 0x89, 0xf3, 0x41, 0xf6, 0x42, 0x30}
	// mov rsp, [r10+152]; jmp rax
	restoreEnd = []byte{0x49, 0x8b, 0xa2, 0x98, 0, 0, 0, 0xff, 0xe0}
)

// FindRestore returns the part of ClrRestoreNonvolatileContextWorker whose call frame information is wrong:
// from the instruction after the push of RBP to the one that loads RSP. Call frame information says that RBP
// points above the frame, but the function loads RBP like all other registers. The pushed RBP is at RSP. The
// range is empty if an ELF module has no such function. code is as for FindHijackStub.
func FindRestore(m *module.Module, code []byte) memory.Range {
	if m.CFI == nil || m.CFI.Arch() != context.ArchAMD64 {
		return memory.Range{}
	}
	r := findFunction(m, code, restoreBegin)
	if r.Start == 0 || r.End > m.Start+uint64(len(code)) {
		return memory.Range{}
	}
	n := bytes.Index(code[r.Start-m.Start:r.End-m.Start], restoreEnd)
	if n < 0 {
		return memory.Range{}
	}
	return memory.Range{Start: r.Start + 1, End: r.Start + uint64(n) + 1}
}

// FindHijackStubPE is FindHijackStub for an image of Windows that is mapped at base.
func FindHijackStubPE(f *pe.File, base uint64) uint64 {
	for i := range f.AMD64().Len() {
		fn := f.AMD64().Entry(i)
		if fn.Indirect() {
			continue
		}
		for j := range HijackStubs {
			h := &HijackStubs[j]
			if h.PE && len(h.Code) > 0 && bytes.HasPrefix(f.Tail(fn.Begin, len(h.Code)), h.Code) {
				return base + uint64(fn.Begin)
			}
		}
	}
	return 0
}

// throwHelpers are functions that a thread runs after its managed code raised a processor exception, such as
// a null reference or a division by zero. The CLR redirects the thread to them. NakedThrowHelper of .NET Core
// 2 and 3 for Windows is one. RCX is the address of the instruction, and the function pushes it like a return
// address.
// Source: dotnet/coreclr (release/2.2) src/vm/amd64/RedirectedHandledJITCase.asm, and coreclr.dll 2.2.2.
var throwHelpers = []unwind.ReturnHook{{
	Arch: context.ArchAMD64, PE: true, Interrupted: true,
	// mov rdx, rsp; push rcx; test rsp, 15
	Code: []byte{0x48, 0x8b, 0xd4, 0x51, 0x48, 0xf7, 0xc4, 0x0f, 0, 0, 0},
}}

// ReturnHooks returns the hijack stubs and the throw helpers in a walker's form.
func ReturnHooks() []unwind.ReturnHook {
	out := make([]unwind.ReturnHook, len(HijackStubs), len(HijackStubs)+len(throwHelpers))
	for i := range HijackStubs {
		out[i] = HijackStubs[i].ReturnHook
	}
	return append(out, throwHelpers...)
}

// ListedReturnHooks returns the entries of ReturnHooks with known code, for a runtime whose stub was found by
// its code.
func ListedReturnHooks() []unwind.ReturnHook {
	return slices.DeleteFunc(ReturnHooks(), func(l unwind.ReturnHook) bool { return len(l.Code) == 0 })
}

// NewWalker returns a walker for stacks of a that knows the CLR's stubs, nil for an unsupported architecture.
func NewWalker(a context.Arch) unwind.Walker {
	w := walker.New(a)
	if l, ok := w.(interface{ SetReturnHooks([]unwind.ReturnHook) }); ok {
		l.SetReturnHooks(ReturnHooks())
	}
	return w
}

// NewAMD64 is NewWalker for callers that need all functions of the x86-64 unwinder.
func NewAMD64() *amd64.Unwinder { return NewWalker(context.ArchAMD64).(*amd64.Unwinder) }

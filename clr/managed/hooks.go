package managed

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

// HijackStub is one release's return-hijack stub, where it differs from others'.
// A new release whose stub begins otherwise is one more row here.
type HijackStub struct {
	System   string // as GOOS spells it
	Releases string // of .NET
	Source   string // in dotnet/runtime src/coreclr/vm
	unwind.ReturnHook
}

// HijackStubs are those that are known. The stub of .NET Core 2.0 to 3.1 for Windows
// needs no row: it pushes nothing before rax, and its unwind data is right.
var HijackStubs = []HijackStub{
	{
		System: "linux", Releases: "9.0 to 10.0", Source: "amd64/asmhelpers.S, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{
			Arch: context.ArchAMD64,
			// push rax, which makes room for the return address; push rbp, rbx, r15, r14, r13, r12.
			// No compiler saves rax first.
			Code: []byte{0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54},
			// The rules are of a function that was called: the true one is what was pushed first.
			Off: -8,
		},
	},
	{
		// A stub that begins otherwise has its return address there too, as long as it makes
		// room for it first.
		System: "linux", Releases: "others", Source: "amd64/asmhelpers.S, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{Arch: context.ArchAMD64, Off: -8},
	},
	{
		System: "linux", Releases: "10.0", Source: "arm64/asmhelpers.S, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{
			Arch: context.ArchARM64,
			// stp x29, x30, [sp, #-192]!, which is HijackArgs' size; mov x29, sp; stp of x19 to x28
			// and of x0 and x1, which a method returns. Others of this size save no x0.
			Code: []byte{
				0xfd, 0x7b, 0xb4, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0xf3, 0x53, 0x01, 0xa9, 0xf5, 0x5b, 0x02, 0xa9,
				0xf7, 0x63, 0x03, 0xa9, 0xf9, 0x6b, 0x04, 0xa9, 0xfb, 0x73, 0x05, 0xa9, 0xe0, 0x07, 0x06, 0xa9,
			},
			// The unwind data is right: the runtime writes the true return address into the frame record.
		},
	},
	{
		System: "windows", Releases: "10.0", Source: "amd64/asmhelpers.asm, OnHijackTripThread",
		ReturnHook: unwind.ReturnHook{
			Arch: context.ArchAMD64, PE: true,
			// mov rdx, rsp; push rax, which makes room for the return address; push rdx; push r15.
			Code: []byte{0x48, 0x8b, 0xd4, 0x50, 0x52, 0x41, 0x57},
			// The unwind data knows neither push and takes the word of rdx. The runtime, which the
			// stub calls, writes the return address first of all: before, no walk can leave the stub.
			Off: 8, Late: true,
		},
	},
}

// FindHijackStub finds a hijack stub in an ELF module of which code was read, from
// its Start on: where one of HijackStubs begins a function. 0 if none does.
func FindHijackStub(m *module.Module, code []byte) uint64 {
	if m.CFI == nil {
		return 0
	}
	for i := range HijackStubs {
		h := &HijackStubs[i]
		if h.Arch != m.CFI.Arch() || h.PE || len(h.Code) == 0 {
			continue
		}
		for from := 0; ; {
			j := bytes.Index(code[from:], h.Code)
			if j < 0 {
				break
			}
			at := m.Start + uint64(from+j) - m.Bias
			if fde, why := m.CFI.Find(at); why == cfi.None && fde.Lo == at {
				return at + m.Bias
			}
			from += j + 1
		}
	}
	return 0
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

// throwHelpers are where the CLR sends a thread whose managed code has raised an exception
// of the processor's, a null reference or a division by zero: NakedThrowHelper of .NET Core
// 2 and 3 for Windows, and its likes. RCX is the address of the instruction, and pushed as
// if it were a return address.
// Source: dotnet/coreclr (release/2.2) src/vm/amd64/RedirectedHandledJITCase.asm,
// and coreclr.dll 2.2.2.
var throwHelpers = []unwind.ReturnHook{{
	Arch: context.ArchAMD64, PE: true, Interrupted: true,
	// mov rdx, rsp; push rcx; test rsp, 15
	Code: []byte{0x48, 0x8b, 0xd4, 0x51, 0x48, 0xf7, 0xc4, 0x0f, 0, 0, 0},
}}

// ReturnHooks returns the hijack stubs and the throw helpers in the form that a walker takes.
func ReturnHooks() []unwind.ReturnHook {
	out := make([]unwind.ReturnHook, len(HijackStubs), len(HijackStubs)+len(throwHelpers))
	for i := range HijackStubs {
		out[i] = HijackStubs[i].ReturnHook
	}
	return append(out, throwHelpers...)
}

// ListedReturnHooks are those of ReturnHooks whose code is known: for a runtime whose stub has
// been found by it.
func ListedReturnHooks() []unwind.ReturnHook {
	return slices.DeleteFunc(ReturnHooks(), func(l unwind.ReturnHook) bool { return len(l.Code) == 0 })
}

// NewWalker returns a walker of a's stacks that knows the CLR's stubs, nil of an
// architecture that is not walked.
func NewWalker(a context.Arch) unwind.Walker {
	w := walker.New(a)
	if l, ok := w.(interface{ SetReturnHooks([]unwind.ReturnHook) }); ok {
		l.SetReturnHooks(ReturnHooks())
	}
	return w
}

// NewAMD64 is NewWalker for callers that want all an unwinder of x86-64 can do.
func NewAMD64() *amd64.Unwinder { return NewWalker(context.ArchAMD64).(*amd64.Unwinder) }

// Package managed steps over what the CLR puts on a stack: compiled methods and
// funclets, IL stubs, precode and helpers, frames whose return address the
// runtime has replaced. It knows neither the runtime's tables nor the system's:
// a Source finds the code, from a data contract (clr/contract) or from the
// function tables that the runtime registers with Windows (System).
//
// Sources: Microsoft, "x64 exception handling"; dotnet/runtime
// src/coreclr/vm/codeman.{h,cpp}, src/coreclr/vm/amd64/asmhelpers.{S,asm},
// src/coreclr/vm/arm64/asmhelpers.S,
// src/coreclr/vm/amd64/RedirectedHandledJITCase.asm, src/coreclr/vm/threadsuspend.cpp
// (HijackThread), of releases 2.0, 2.2, 9.0 and 10.0.
//
// Glossary. The runtime *hijacks* a method's return: it replaces the return
// address on the stack by the address of its *hijack stub*, and keeps the true
// one in the Thread. It *redirects* a thread that it has stopped in managed code
// by writing its context: the *redirect stub* runs next. A *precode* is the entry
// of a method that may not be compiled yet. A *VSD resolve stub* belongs to an
// interface call.
//
// Strategy. The unwind data of managed code is Windows' on every system, so there
// is one interpreter of it for each architecture, that of unwind/amd64 and that of
// unwind/arm64, whose records say where epilogs are. What it needs of a function is
// copied from the target once an address: the UNWIND_INFO with all that it is
// chained to, for an interrupted frame the code that may be the rest of an
// epilog, and where that ends in a jump the unwind data of the function it leads
// to. Stubs have no frame: one is left only where a thread was interrupted, and
// only if what is on top of the stack can be a return address. What is known of
// the runtime's own stubs, per release, is a table: ReturnHooks.
//
// Known gaps: of ARM64 only what clr/contract reads is stepped, on Linux; machine
// frames in managed code are refused.
package managed

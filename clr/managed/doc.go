// Package managed unwinds the CLR's frames: compiled methods and funclets, IL stubs, precode and helpers, and
// frames whose return address the runtime has replaced. It is independent of the runtime's tables and of the
// system: a Source finds the code, through a data contract (clr/contract) or the function tables that the
// runtime registers with Windows (System).
//
// Sources: Microsoft, "x64 exception handling"; dotnet/runtime src/coreclr/vm/codeman.{h,cpp},
// src/coreclr/vm/amd64/asmhelpers.{S,asm}, src/coreclr/vm/arm64/asmhelpers.S,
// src/coreclr/vm/amd64/RedirectedHandledJITCase.asm, src/coreclr/vm/threadsuspend.cpp (HijackThread), of
// releases 2.0, 2.2, 9.0 and 10.0.
//
// Glossary. The runtime *hijacks* a method's return: it replaces the return address on the stack by the
// address of its *hijack stub*, and keeps the true one in the Thread. It *redirects* a thread that it has
// stopped in managed code by changing the thread's context: the *redirect stub* runs next. A *precode* is the
// entry of a method that may not be compiled yet. A *VSD resolve stub* belongs to an interface call.
//
// Strategy. Managed code has Windows unwind data on every system, so each architecture has one interpreter,
// in unwind/amd64 and unwind/arm64. ARM64 records also locate epilogs. The needed data of a function are
// copied from the target once per address. They are the UNWIND_INFO and all UNWIND_INFOs that it is chained
// to. For an interrupted frame, the code that may be the rest of an epilog is copied too. If that code ends
// in a jump, so are the unwind data of the jump's target. Stubs have no frame. A walk leaves a stub on two
// conditions: the thread was interrupted in the stub, and the word on top of the stack can be a return
// address. The runtime's own stubs of each release are in a table: ReturnHooks. On x86-64, an address's step
// becomes a rule, and runs of such steps are made at once: see Tables.Walk.
//
// Known gaps: on ARM64 only the sources of clr/contract are supported, on Linux; machine frames in managed
// code are refused.
package managed

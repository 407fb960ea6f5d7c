// Package amd64 walks x86-64 stacks: ELF modules by their call frame information, PE modules by their unwind
// data.
//
// Sources: Microsoft, "x64 exception handling" (unwind procedure) and "x64 prolog and epilog"; DWARF 5
// section 6.4; the System V psABI for x86-64, release 1.0, sections 3.2 (registers, frames), 3.6.2
// (unwinding) and figure 3.36 (DWARF register numbers); Linux
// arch/x86/include/uapi/asm/{sigcontext,ucontext}.h (the signal frame); the GNU and LLVM linkers' procedure
// linkage tables.
//
// Glossary. A *rule* describes the step from a frame to its caller at one address. A *slot* is where a
// register was saved, in words below the CFA. A *side rule* is a rule that does not fit a Rule's bits, a *PE
// rule* one of a Windows function. A *look-up address* is the address whose rule is needed: ip for an exact
// frame, ip-1 for a return address. *Known* registers are those whose value in this frame is certain.
//
// Strategy: an address's rule is looked up in a cache of sets of four. On a miss its module's unwind data is
// interpreted once and packed. A step executes the rule: read the return address, restore the callee-saved
// registers, check bounds and progress. A failed step changes nothing. A step gives the same result with and
// without the cache, because the rule depends only on the look-up address and the module table. The rule of
// a PE function also depends on whether the ip is exact, and records that. PE unwind information is read when
// a rule is made, and so is the code that shows whether an ip is in an epilog. For a few functions, both are
// read at every step: see pe_rule.go. So is the code of an ELF function whose frame pointer is needed and
// unknown: see measureFrame.
//
// Step and Walk allocate nothing, take no lock, and make no system call: they may run while the target is
// suspended.
//
// Known gaps: a walk ends at a PE function whose stack is above its caller's (Windows has fibers for that,
// from which nothing leads back); XMM registers that the kernel saved in a signal frame are unknown below it;
// return addresses that are only in a shadow stack are not used.
package amd64

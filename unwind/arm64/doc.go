// Package arm64 walks AArch64 stacks: ELF modules by their call frame information, PE modules by their packed
// and .xdata unwind data.
//
// Sources: DWARF 5 section 6.4; "DWARF for the Arm 64-bit Architecture" (register numbers, RA_SIGN_STATE);
// "Procedure Call Standard for the Arm 64-bit Architecture" (preserved registers, frame records); Microsoft,
// "ARM64 exception handling"; dotnet/runtime src/coreclr/unwinder/arm64; Linux arch/arm64/kernel/signal.c and
// uapi/asm/sigcontext.h (the signal frame).
//
// Glossary. A *rule* describes the step from a frame to its caller at one address. A *slot* is where a
// register was saved, in words from the stack pointer or from the rule's base register. A *look-up address*
// is the address whose rule is needed: pc for an exact frame, pc-1 for a return address. *Known* registers
// are those whose value in this frame is certain. *Live LR* means that x30 still holds the return address:
// possible in an interrupted frame only, since a function that has made a call has lost it. *PAC* is the
// pointer authentication code in a signed address's upper bits.
//
// Strategy: an address's rule is looked up in a cache of sets of four. On a miss its module's unwind data is
// interpreted once and packed into a rule that fits one cache line with its address. Data that does not fit
// (expressions, machine frames, contexts) is interpreted at each step. A step executes the rule: read the
// return address, restore the callee-saved registers, check bounds and progress. A failed step changes
// nothing. The rule depends only on the look-up address and the module table, so a step gives the same result
// with and without the cache.
//
// Step and Walk allocate nothing, take no lock, and make no system call: they may run while the target is
// suspended.
//
// Known gaps: vector registers become unknown in code that is left by following it, and in epilogs that
// restore registers later than their rows say; SVE registers and SVE unwind codes; the PAuth_LR extension;
// signed return addresses are assumed to have 48 significant bits.
package arm64

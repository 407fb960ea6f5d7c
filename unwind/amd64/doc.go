// Package amd64 walks x86-64 stacks: ELF modules by their call frame
// information, PE modules by their unwind data.
//
// Sources: Microsoft, "x64 exception handling" (unwind procedure) and "x64 prolog and
// epilog"; DWARF 5 section 6.4; the System V psABI for x86-64, release 1.0, sections 3.2
// (registers, frames), 3.6.2 (unwinding) and figure 3.36 (DWARF register
// numbers); Linux arch/x86/include/uapi/asm/{sigcontext,ucontext}.h (the
// signal frame); the GNU and LLVM linkers' procedure linkage tables.
//
// Glossary. A *rule* says how to get from a frame to its caller at one address.
// A *slot* is where a register was saved, in words below the CFA. A *side
// rule* is one that does not fit a Rule's bits, a *PE rule* such a one of a
// Windows function. A *look-up address* is the address whose rule is wanted: ip
// for an exact frame, ip-1 for a return address. *Known* registers are those
// whose value in this frame is certain.
//
// Strategy: an address's rule is looked for in a cache of sets of four; on a
// miss its module's unwind data is interpreted once and packed. A step runs
// the rule: read the return address, restore the callee-saved registers, check
// bounds and progress. Nothing is changed if a step fails. The rule depends on
// the look-up address and the module table alone (of a PE function also on
// whether the ip is exact, which its rule remembers), so a step gives the same
// answer with and without the cache. PE unwind information, and the code that
// tells whether an ip stands in an epilog, are read when a rule is made; few
// functions are left to be read at every step: see pe_rule.go.
//
// Step and Walk allocate nothing, take no lock and make no system call: they
// may run while the target is suspended.
//
// Known gaps: a PE function that has gone over to a higher stack ends a walk, since
// Windows has fibres for that, which nothing leads out of; registers that a signal handler's frame saves outside the general
// ones (XMM) are unknown below it; return addresses kept in a shadow stack only
// are not used.
package amd64

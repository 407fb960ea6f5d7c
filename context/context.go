// Package context holds register CONTEXT layouts and their conversion: the registers of x86-64 and AArch64,
// Win32 CONTEXT for both, the CLR's PAL CONTEXT on Linux (the Win32 layout as its prefix), Linux ucontext and
// NT_PRSTATUS.
//
// Sources: Windows SDK winnt.h (CONTEXT: 1,232 bytes on x64, 912 on ARM64); dotnet/runtime
// src/coreclr/pal/inc/pal.h, releases 9.0 and 10.0; Linux arch/x86/include/uapi/asm/sigcontext.h,
// arch/arm64/include/uapi/asm/sigcontext.h and include/uapi/linux/elfcore.h (NT_PRSTATUS); "System V
// Application Binary Interface, AMD64 Architecture Processor Supplement", section 3.2.1 and "Procedure Call
// Standard for the Arm 64-bit Architecture", "General-purpose registers", for the registers that functions
// preserve.
//
// Glossary. A *layout* is how one system stores registers in memory. *Known* are the registers whose value in
// a frame is certain, as bits: 0-15 general and 16-25 XMM6-15 on x86-64, 0-30 x0-x30 and 32-39 d8-d15 on
// ARM64.
//
// Strategy. One type holds the registers of either architecture. Generic code uses its methods; walkers use
// the member of their architecture directly. Every reader checks the size of its input, and its error
// contains the required size.
//
// Known gaps: of vector registers only those that a function preserves; no debug registers.
package context

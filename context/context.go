// Package context holds the registers of x86-64 and AArch64, and converts them from the layouts in which
// systems store them. These are the Win32 CONTEXT, the CLR's PAL CONTEXT on Linux (it begins like the Win32
// one), and Linux's ucontext and NT_PRSTATUS.
//
// Sources: Windows SDK winnt.h (CONTEXT: 1,232 bytes on x64, 912 on ARM64); dotnet/runtime
// src/coreclr/pal/inc/pal.h, releases 9.0 and 10.0; Linux arch/x86/include/uapi/asm/sigcontext.h,
// arch/arm64/include/uapi/asm/sigcontext.h and include/uapi/linux/elfcore.h (NT_PRSTATUS). The registers that
// functions preserve are in "System V Application Binary Interface, AMD64 Architecture Processor Supplement",
// section 3.2.1. Those of ARM64 are in "Procedure Call Standard for the Arm 64-bit Architecture",
// "General-purpose registers".
//
// Glossary. A *layout* is how one system stores registers in memory. *Known* are the registers whose value in
// a frame is certain, as bits: 0-15 general and 16-25 XMM6-15 on x86-64, 0-30 x0-x30 and 32-39 d8-d15 on
// ARM64.
//
// Strategy. One type holds the registers of either architecture. Generic code uses its methods; walkers use
// the member of their architecture directly. Every reader checks the size of its input, and its error
// contains the required size.
//
// Known gaps: only the vector registers that a function preserves; no debug registers.
package context

// Package context holds register CONTEXT layouts and their conversion: the
// registers of x86-64 and AArch64, Win32 CONTEXT for both, the CLR's PAL
// CONTEXT on Linux (the Win32 layout as its prefix), Linux ucontext and
// NT_PRSTATUS.
//
// Sources: Windows SDK winnt.h; dotnet/runtime src/coreclr/pal/inc/pal.h;
// Linux arch/x86/include/uapi/asm/sigcontext.h and
// arch/arm64/include/uapi/asm/sigcontext.h.
//
// Every reader checks the size of what it is given and says what it needed.
package context

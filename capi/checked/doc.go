// Package checked is a checking proxy in C, for people who write or debug a
// profiler: it stands between a profiler and the CLR and says which rule of the
// profiling API a call breaks. src/checked.h is its interface, src/loader.c a library that
// puts it before a profiler that is not to be rebuilt.
//
// Sources: the contract table of package clr/api, from which table.h is written;
// dotnet/runtime src/coreclr/inc/corprof.idl; System V ABI AMD64, AAPCS64,
// Microsoft's x64 calling convention (what proxy.c relies on).
//
// Glossary. A *violation* is a call, or a declared lock or suspension, that breaks
// a rule. A *fatal* one would hang or end the process, and is not made.
//
// Strategy: vtables whose functions pass on more arguments than any method has, so
// that no signature matters; the thread's callbacks on a stack in thread-local
// storage; whether a thread is a managed one is asked of the CLR. There is no Go
// here: the tests build the C with the system's compilers and load it into real
// CLRs.
//
// Known gaps: FunctionIDs and ModuleIDs are not followed, so stale ones are not
// seen; locks and suspended threads must be declared; one profiler a process.
package checked

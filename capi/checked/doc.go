// Package checked is a checking proxy in C, for people who write or debug a
// profiler: it stands between a profiler and the CLR and says which rule of the
// profiling API a call breaks. src/checked.h is its interface, src/loader.c a library that
// puts it before a profiler that is not to be rebuilt.
//
// Sources: the tables of package clr/api, from which table.h is written;
// dotnet/runtime src/coreclr/inc/corprof.idl; System V ABI AMD64, AAPCS64,
// Microsoft's x64 calling convention (what proxy.c relies on).
//
// Glossary. A *violation* is a call, or a declared lock or suspension, that breaks
// a rule. A *fatal* one would hang or end the process, and is not made.
//
// Strategy: vtables whose functions pass on more arguments than any method has, so
// that no signature matters; a state machine for each thread (callbacks, methods under
// way, locks, suspended threads) and one for the runtime (Initialize, the suspension and
// its owner, Shutdown); tables of ids that have ended; a watch that looks every 20 ms for
// waits that do not end; whether a thread is a managed one is asked of the CLR. There is no Go
// here: the tests build the C with the system's compilers and load it into real
// CLRs.
//
// Known gaps: ids are followed where their callbacks are in the event mask; locks and
// suspended threads must be declared; one profiler a process.
package checked

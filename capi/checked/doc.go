// Package checked is a checking proxy in C for authors of profilers. It sits between a profiler and the CLR
// and reports which rule of the profiling API a call breaks. src/checked.h is its interface; src/loader.c is
// a library that puts it in front of a profiler without rebuilding that.
//
// Sources: the tables of package clr/api, from which table.h is written; dotnet/runtime
// src/coreclr/inc/corprof.idl; System V ABI AMD64, AAPCS64, Microsoft's x64 calling convention (on which
// proxy.c relies).
//
// Glossary. A *violation* is a call, or a declared lock or suspension, that breaks a rule. A *fatal* one
// would hang or crash the process, and is not executed.
//
// Strategy: each function of the proxy forwards as many arguments as the longest method has, so it needs no
// signature; a state machine for each thread (callbacks, running methods, locks, suspended threads) and
// one for the runtime (Initialize, the suspension and its owner, Shutdown); tables of ids that have ended; a
// watch that checks every 20 ms for waits that do not end. The CLR reports whether a thread is managed. There
// is no Go code here: the tests build the C with the system's compilers and load it into real CLRs.
//
// Known gaps: ids are tracked only if their callbacks are in the event mask; locks and suspended threads must
// be declared; one profiler per process.
package checked

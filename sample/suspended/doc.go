// Package suspended samples a .NET process on Windows without running code in it.
//
// Sources: Microsoft, SuspendThread, GetThreadContext and ReadProcessMemory.
//
// Glossary. A *prospect* is a process that may load a .NET runtime.
//
// Strategy. Each thread in turn is suspended while its context and stack are copied. Its samples are weighted
// by the CPU time that it has used.
//
// Known gaps: x86-64 only.
package suspended

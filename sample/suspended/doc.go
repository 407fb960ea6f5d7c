// Package suspended samples a .NET process on Windows with nothing of ours in it.
//
// Sources: Microsoft, SuspendThread, GetThreadContext and ReadProcessMemory.
//
// Glossary. A *prospect* is a process that may become one of .NET.
//
// Strategy. Each thread in turn is suspended while its context and stack are copied, and is
// weighted by the processor time that it has used.
//
// Known gaps: x86-64 only.
package suspended

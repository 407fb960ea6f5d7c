// Package amd64 reads the unwind data of x64 PE images: the exception directory's
// RUNTIME_FUNCTIONs and UNWIND_INFO versions 1 and 2.
//
// Sources: Microsoft, "x64 exception handling" (struct RUNTIME_FUNCTION, struct
// UNWIND_INFO, struct UNWIND_CODE, chained unwind info) and "x64 prolog and epilog"; dotnet/runtime
// src/coreclr/unwinder/amd64 (kept in step with Windows) and
// src/coreclr/inc/win64unwind.h for UWOP_SET_FPREG_LARGE and version 2.
//
// Glossary. An *indirect* entry points to another RUNTIME_FUNCTION instead of
// unwind information. *Chained* information belongs to a fragment of a function
// and ends in the RUNTIME_FUNCTION of its parent. A *machine frame* is what the
// processor pushes at an interrupt.
//
// Strategy: look-up and decoding allocate nothing and return reasons by value;
// errors with structure, offset, and value come from the cold paths.
//
// Known gaps: UNWIND_INFO version 3 is recognized and refused.
package amd64

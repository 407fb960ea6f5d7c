// Package pe reads PE images and their unwind data: headers, sections, export
// names and the debug id; the x64 exception directory with UNWIND_INFO
// versions 1 and 2; ARM64 packed words and .xdata records.
//
// Sources: Microsoft, "PE format", "x64 exception handling" and "ARM64
// exception handling"; dotnet/runtime src/coreclr/unwinder/{amd64,arm64}
// (kept in step with Windows) and src/coreclr/inc/win64unwind.h for
// UWOP_SET_FPREG_LARGE and version 2.
//
// Glossary. An *RVA* is an address relative to the image's first byte. The
// *exception directory*, usually the section .pdata, is a table of
// RUNTIME_FUNCTIONs sorted by begin. An *indirect* entry points to another
// RUNTIME_FUNCTION instead of unwind information. *Chained* information
// belongs to a fragment of a function and ends in the RUNTIME_FUNCTION of its
// parent. A *machine frame* is what the processor pushes at an interrupt.
//
// Strategy: an image is a sorted list of runs (RVA, bytes), the same for a
// file, a mapped image and a dump with holes; everything is read through
// BytesAt, which checks and never copies. What loading reads is bounded by the
// bytes at hand, never by a count the image states. Look-up and decoding
// allocate nothing and give reasons by value; errors with structure, offset and
// value come from the cold paths.
//
// Known gaps: UNWIND_INFO version 3 is recognised and refused; ARM64EC and
// ARM64X images are read as what their header says; symbols of the COFF symbol
// table are not read.
package pe

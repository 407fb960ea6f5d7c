// Package pe reads PE images: headers, sections, imports and exports, the debug
// id. The unwind data of their code is read by a room per architecture, pe/amd64
// and pe/arm64.
//
// Sources: Microsoft, "PE format"; dotnet/runtime src/coreclr/inc/pedecoder.h for
// the machines of the CLR's images.
//
// Glossary. An *RVA* is an address relative to the image's first byte. The
// *exception directory*, usually the section .pdata, is a table of
// RUNTIME_FUNCTIONs sorted by begin.
//
// Strategy: an image is a sorted list of blocks (RVA, bytes), the same for a
// file, a mapped image and a dump with holes; everything is read through
// BytesAt, which checks and never copies. What loading reads is bounded by the
// bytes at hand, never by a count the image states.
//
// Known gaps: ARM64EC and ARM64X images are read as what their header says;
// symbols of the COFF symbol table are not read.
package pe

// Package pe reads PE images: headers, sections, imports and exports, the debug
// id. A package per architecture, pe/amd64 or pe/arm64, reads the unwind data of
// their code.
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
// BytesAt, which checks and never copies. Loading reads no more than the bytes
// that exist, whatever counts the image states.
//
// Known gaps: ARM64EC and ARM64X images are read as the machine in their header;
// of the COFF symbol table only functions are read.
package pe

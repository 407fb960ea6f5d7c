// Package dump reads ELF cores: the threads' registers, what was mapped where, and
// the memory that was kept.
//
// Sources: the ELF gABI (program headers, notes, PN_XNUM); Linux fs/binfmt_elf.c
// (NT_PRSTATUS, NT_AUXV, NT_FILE, NT_ARM_TLS), Documentation/filesystems/proc.rst
// (coredump_filter); dotnet/runtime src/coreclr/debug/createdump for what its cores
// keep; core(5).
//
// Glossary. A page is *missing* if it was mapped and is not in the core: the kernel
// leaves out what is in files, createdump all that no stack needs.
//
// Strategy. A core is untrusted: every size is checked against the file before it
// is used, what lies outside is left out and said (Problems), and what was read so
// far is kept. Memory that is missing is read from the module's file, if the user
// has it: the same one, by its build id, where the core tells that.
//
// Known gaps: cores of x86-64 and ARM64, little endian; no minidumps; registers of
// x86-64 and ARM64 as NT_PRSTATUS has them.
package dump

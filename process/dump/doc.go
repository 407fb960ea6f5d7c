// Package dump reads ELF cores: registers of threads, mappings, and memory.
//
// Sources: the ELF gABI (program headers, notes, PN_XNUM); Linux fs/binfmt_elf.c
// (NT_PRSTATUS, NT_AUXV, NT_FILE, NT_ARM_TLS), Documentation/filesystems/proc.rst
// (coredump_filter); dotnet/runtime src/coreclr/debug/createdump for the content of
// its cores; core(5).
//
// Glossary. A page is *missing* if it was mapped but is not in the core. The kernel
// leaves out pages of files. createdump leaves out everything that no stack needs.
//
// Strategy. A core is untrusted: every size is checked against the file before use.
// Data outside the file is skipped and reported (Problems); everything else is kept.
// Missing memory is read from the module's file if the user has it. The build id
// identifies the file, where the core contains the build id.
//
// Known gaps: only little-endian cores of x86-64 and ARM64; no minidumps; only the
// registers in NT_PRSTATUS.
package dump

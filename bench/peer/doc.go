// Package peer walks recorded stacks with another unwinder, nongnu libunwind,
// to compare its frames and its speed with ours over the same bytes.
//
// Sources: libunwind's manual.
//
// Glossary. A *walk* is registers and copied memory; a *set* is the modules
// mapped at a walk. The *leaf block* of a raw sample is its frames from the top
// to the first that is not native.
//
// Strategy: the C program is compiled on use, so that no cgo and no link to
// libunwind gets into the module: linking it replaces backtrace.
//
// Known gaps: x86-64 ELF only; libunwind is a second opinion, not the truth.
package peer

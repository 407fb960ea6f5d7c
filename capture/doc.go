// Package capture keeps stacks of running programs in one file, to walk them again:
// for measurements whose input is real programs, and for reports of a wrong walk.
//
// Sources: ptrace(2), proc(5) (fields 48 to 51 of /proc/PID/stat are where
// arguments and environment stand).
//
// Glossary. A *set* is the images that were mapped at one time. A *stack* is a
// thread's registers and a copy of its stack, from the red zone below SP up.
//
// The file, version 1, is "SWSTACK1" and then little-endian words of 64 bits:
//
//	number of sets, of each:
//	  number of images, of each: start, end, bias, length of the path, the path,
//	  length of the build id, the build id in hexadecimal
//	number of stacks, of each:
//	  its set, at most how many frames to walk, RIP, the 16 registers in the
//	  order of their encoding (RAX RCX RDX RBX RSP RBP RSI RDI R8 to R15),
//	  number of runs of memory, of each: address, length, the bytes
//
// Strings have no padding. A reader that knows the version reads all of it.
//
// Strategy. Images are named, not copied: a stack is walked again where the same
// builds are, which the build ids tell. What stands in the stack as strings of
// the command line and the environment is blanked before it is written; what the
// program itself keeps on its stacks is not, so a file is as private as a core.
//
// Known gaps: Linux on x86-64; images without a build id are not compared;
// registers other than the general ones are not kept.
package capture

// Package capture keeps stacks of running programs in one file, so that they can be walked
// again. `seedwalk capture` writes the file: to measure on real programs, or to report a
// wrong walk.
//
// Sources: ptrace(2), proc(5) (fields 48 to 51 of /proc/PID/stat are the
// addresses of arguments and environment).
//
// Glossary. A *set* is the images that were mapped at one time. A *stack* is a
// thread's registers and a copy of its stack, from the red zone below SP up.
//
// The file, version 1, is "SWSTACK1" and then little-endian words of 64 bits:
//
//	number of sets, for each:
//	  number of images, for each: start, end, bias, length of the path, the path,
//	  length of the build id, the build id in hexadecimal
//	number of stacks, for each:
//	  its set, the highest number of frames to walk, RIP.
//	  The 16 registers in the order of their encoding: RAX RCX RDX RBX RSP RBP RSI RDI R8 to R15.
//	  Number of runs of memory, for each: address, length, the bytes.
//
// Strings have no padding. A reader that knows the version reads the whole file.
//
// Strategy. The file names images and does not contain them. To walk a stack again, the
// same builds must be present; the build ids identify them. The strings of the command
// line and of the environment are blanked before they are written. Other stack contents
// are not, so keep a file as private as a core.
//
// Known gaps: Linux on x86-64 only; images without a build id are not compared; only
// general registers are kept.
package capture

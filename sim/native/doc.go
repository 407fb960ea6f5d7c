// Package native explores the product's C under every order of its steps and every memory order
// that C11 permits.
//
// Sources: Abdulla, Aronis, Jonsson, Sagonas, "Optimal Dynamic Partial Order Reduction" (2014),
// for source sets and sleep sets; ISO C11, section 5.1.2.4; Kang, Hur, Lahav, Vafeiadis, Dreyer,
// "A Promising Semantics for Relaxed-Memory Concurrency" (2017), for views; gcc's
// -fsanitize=thread, for the instrumentation.
//
// Glossary. A *world* is a C file that includes sources of the product and says what each thread
// does with them (worlds/). A *step* is an atomic operation, a plain access to watched memory, or
// a call of the simulated kernel. An *execution* is one order of dependent steps, with one choice
// of what each load reads.
//
// Strategy. gcc -fsanitize=thread turns every access into a call, with its memory order. The
// explorer supplies these functions in place of the sanitizer's runtime (src/). Threads are
// coroutines of one process. The search has no bound on preemptions: it ends when every
// execution is explored. A load may read any store that its thread does not know to be
// overwritten. A store may precede others in modification order. The product's sources are
// compiled unchanged. Only the sizes of tables and the system calls are replaced.
//
// The probe is also compiled for ARM64 and explored in qemu (make explore).
//
// Known gaps: no load buffering (a load never reads a store that executes later). Plain loads
// read the newest value; a race that involves one is reported, not explored. The Go half of a
// protocol is written in the world in C, with sequentially consistent atomics.
// sample/probe's TestRingWorld and TestReadWorld run the true Go half, at one memory order.
package native

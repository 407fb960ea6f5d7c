// Package work bounds the instructions that the engine executes for a frame. Their number is the same on a
// busy machine; times are not.
//
// qemu-x86_64 runs a benchmark's program with the plugin of testdata/count.c, with two numbers of
// repetitions. The difference is the cost of the repetitions.
//
// Source: QEMU, "TCG Plugins" (version 1 of the interface).
//
// Known gaps: cache misses and mispredicted branches cost time, but
// no instructions. The numbers are of one release of the Go compiler.
package work

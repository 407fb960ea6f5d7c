// Package work guards how much the engine does for a frame: it counts instructions,
// which are the same on a machine that is busy with something else, where times
// are not.
//
// A benchmark's program is run by qemu-x86_64 with the plugin of testdata/count.c,
// with two numbers of repetitions: the difference is what the repetitions cost.
//
// Source: QEMU, "TCG Plugins" (version 1 of the interface).
//
// Known gaps: cache misses and branches that are predicted wrongly cost time, but
// no instructions. The numbers are of one release of the Go compiler.
package work

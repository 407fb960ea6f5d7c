// Package fuzz holds every fuzz target, one for each way in which bytes from outside
// come in. Their corpora are in testdata/fuzz and are replayed by `go test`;
// `make fuzz` runs each target for a while, scripts/fuzz.sh one of them.
//
// Source: the formats' own, as named by the packages that read them.
//
// Strategy: a target checks what must hold of any input: no panic, bounded time and
// memory, a reason for what is refused, the same answer twice, with and without
// caches. What is right the vectors and the programs say, not the fuzzer.
//
// Known gaps: nothing here runs C.
package fuzz

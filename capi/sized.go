package main

/*
#include "types.h"
*/
import "C"

import "unsafe"

// Structures of the caller begin with their size: what is there on both sides is
// read or written, and the rest of the longer side is 0.

// maxStruct is far above any structure of seedwalk.h: a larger size was never set.
const maxStruct = 4096

// sizeOf is the size that a structure of the caller's says it has.
func sizeOf(p unsafe.Pointer, least uintptr) (n uintptr, err C.int) {
	if p == nil {
		return 0, badArgument
	}
	switch n = uintptr(*(*C.uint32_t)(p)); {
	case n < least:
		return n, shortStruct
	case n > maxStruct:
		return n, unknownField
	}
	return n, ok
}

// sized reads a structure of the caller's into to, known bytes long.
func sized(to unsafe.Pointer, known, least uintptr, from unsafe.Pointer) C.int {
	n, err := sizeOf(from, least)
	if err != ok {
		return err
	}
	theirs, ours := unsafe.Slice((*byte)(from), n), unsafe.Slice((*byte)(to), known)
	clear(ours[copy(ours, theirs):])
	for _, b := range theirs[min(n, known):] {
		if b != 0 {
			return unknownField
		}
	}
	return ok
}

// answer writes from, known bytes long, into a structure of the caller's, whose
// size was looked at before and stays.
func answer(to unsafe.Pointer, from unsafe.Pointer, known uintptr) {
	const head = unsafe.Sizeof(C.uint32_t(0))
	n := uintptr(*(*C.uint32_t)(to))
	theirs, ours := unsafe.Slice((*byte)(to), n)[head:], unsafe.Slice((*byte)(from), known)[head:]
	clear(theirs[copy(theirs, ours):])
}

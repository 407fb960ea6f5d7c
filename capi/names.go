package main

/*
#include "types.h"
*/
import "C"

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	ok           = C.SEEDWALK_OK
	badHandle    = C.SEEDWALK_BAD_HANDLE
	badArgument  = C.SEEDWALK_BAD_ARGUMENT
	unreadable   = C.SEEDWALK_UNREADABLE
	shortStruct  = C.SEEDWALK_SHORT_STRUCT
	unknownField = C.SEEDWALK_UNKNOWN_FIELD
	busy         = C.SEEDWALK_BUSY
	tooMany      = C.SEEDWALK_TOO_MANY
	noModule     = C.SEEDWALK_NO_MODULE
)

//export seedwalk_stop_name
func seedwalk_stop_name(stop C.int32_t, out *C.char, room C.int32_t) C.int {
	return put(unwind.Stop(narrow(stop)).String(), out, room)
}

//export seedwalk_verdict_name
func seedwalk_verdict_name(verdict C.int32_t, out *C.char, room C.int32_t) C.int {
	return put(seed.Verdict(narrow(verdict)).String(), out, room)
}

// narrow maps values outside the 8-bit types to an invalid one.
func narrow(v C.int32_t) uint8 {
	if v < 0 || v > 255 {
		return 255
	}
	return uint8(v)
}

func put(s string, out *C.char, room C.int32_t) C.int {
	if out == nil || room <= 0 {
		return badArgument
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(out)), int(room))
	n := copy(b[:len(b)-1], s)
	b[n] = 0
	return C.int(n)
}

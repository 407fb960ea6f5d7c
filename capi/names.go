package main

/*
#include "types.h"
*/
import "C"

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/seed"
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

// errorTexts are by the error's number, negated.
var errorTexts = [...]string{
	-ok:           "no error",
	-badHandle:    "the handle is not open",
	-badArgument:  "an argument cannot be: a null pointer, a length of 0, a number that is none of the header's",
	-unreadable:   "the module's file, or the process's mappings, cannot be read",
	-shortStruct:  "the size of a structure is less than its fields that must be there: set it to sizeof",
	-unknownField: "a structure has a field that this library does not know and that is not 0: is the header newer than the library?",
	-busy:         "another thread is inside the library with the same handle",
	-tooMany:      "64 handles are open",
	-noModule:     "no module of the last commit has this id",
}

//export seedwalk_error_text
func seedwalk_error_text(err C.int32_t, out *C.char, room C.int32_t) C.int {
	if err > 0 || int(-err) >= len(errorTexts) || -err < 0 {
		return put("unknown error", out, room)
	}
	return put(errorTexts[-err], out, room)
}

//export seedwalk_gap_name
func seedwalk_gap_name(gap C.int32_t, out *C.char, room C.int32_t) C.int {
	return put(merge.Gap(narrow(gap)).String(), out, room)
}

//export seedwalk_stop_name
func seedwalk_stop_name(stop C.int32_t, out *C.char, room C.int32_t) C.int {
	return put(unwind.Stop(narrow(stop)).String(), out, room)
}

//export seedwalk_verdict_name
func seedwalk_verdict_name(verdict C.int32_t, out *C.char, room C.int32_t) C.int {
	return put(seed.Verdict(narrow(verdict)).String(), out, room)
}

// narrow keeps what is no value of the 8-bit types from becoming one.
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

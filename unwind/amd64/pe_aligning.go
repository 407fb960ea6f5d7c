package amd64

import (
	"encoding/binary"

	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// A function that may be entered with any stack pointer aligns its stack by a call: its prolog branches to a
// call after the function's end, whose target is the instruction after the branch. No entry covers that call,
// so there is a frame without unwind data between the function and its caller.
//
// NakedThrowHelper of .NET Core 2 and 3 for Windows does this. The CLR sends a thread there whose code has
// read through a null reference.
//
// Source: dotnet/coreclr (release/2.2) src/vm/amd64/RedirectedHandledJITCase.asm, and coreclr.dll 2.2.2.

// aligning returns, for a return address after such a call, the target of the call and the entry that covers
// the target. The frame has the registers of the function at the target.
func aligning(t *peamd64.Table, ra uint32) (entry peamd64.RuntimeFunction, to uint32, ok bool) {
	const size = 5 // of the call
	call := ra - size
	code := t.Tail(call, size)
	if len(code) < size || code[0] != 0xe8 {
		return entry, 0, false
	}
	to = ra + binary.LittleEndian.Uint32(code[1:])
	entry, ok = t.Lookup(to)
	return entry, to, ok && to > entry.Begin && branches(t, to, call)
}

// branches reports whether the instruction before to is a conditional branch to target.
func branches(t *peamd64.Table, to, target uint32) bool {
	if code := t.Tail(to-2, 2); len(code) == 2 && code[0]&0xf0 == 0x70 && to+uint32(int8(code[1])) == target {
		return true
	}
	code := t.Tail(to-6, 6)
	return len(code) == 6 &&
		code[0] == 0x0f && code[1]&0xf0 == 0x80 && to+binary.LittleEndian.Uint32(code[2:]) == target
}

package x86

// A thunk of gcc's -mfunction-return and -mindirect-branch is call 1f; 0: pause; lfence; jmp 0b; 1: BODY;
// ret. The body drops the return address (lea rsp, [rsp+8]) or overwrites it with the target of an indirect
// jump or call (mov [rsp], reg). gcc writes a CFA of RSP+16 at 1 and nothing later. At the return of the
// first kind the CFA is RSP+8. A thunk of the second kind is left as its target would be: it may be called,
// or reached by a computed goto from the middle of a function. After an inlined thunk, the function's old CFA
// is right again. gcc's CFA stays wrong up to the function's end, also if it is remembered and restored (seen
// in 11.3 and 12.2).

// ThunkSize is the number of bytes of the longest body, with its return.
const ThunkSize = 6

// Trap is pause; lfence: the code after the call in a thunk.
var Trap = []byte{0xf3, 0x90, 0x0f, 0xae, 0xe8}

// ReturnThunk is the code after the call in a return thunk: the trap, jmp 0b, lea rsp, [rsp+8], ret.
var ReturnThunk = append(Trap[:5:5], 0xeb, 0xf9, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3)

// Thunk is a thunk's body.
type Thunk struct {
	Ret   uint64 // offset of the return
	Drops bool   // the body drops the return address
	Reg   uint64 // otherwise the register with the target
}

// ThunkIn reads the body of a thunk at the beginning of code. ok is false if no body is there, or if code has
// fewer than ThunkSize bytes.
func ThunkIn(code []byte) (t Thunk, ok bool) {
	if len(code) < ThunkSize {
		return t, false
	}
	switch b := [ThunkSize]byte(code); {
	case b == [ThunkSize]byte{0x48, 0x8d, 0x64, 0x24, 8, 0xc3}:
		return Thunk{Ret: 5, Drops: true}, true
	case b[0]&0xfb == 0x48 && b[1] == 0x89 && b[2]&0xc7 == 4 && b[3] == 0x24 && b[4] == 0xc3:
		return Thunk{Ret: 4, Reg: uint64(b[0]&4<<1 | b[2]>>3)}, true
	}
	return t, false
}

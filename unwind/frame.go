// Package unwind holds what both architectures share: frames, how far each is
// to be trusted, why a walk ended, and the bounds a walk keeps.
//
// Sources: the vocabulary follows the DWARF 5 standard (section 6.4, "Call Frame
// Information": CFA, row, return address) and Microsoft's "x64 exception handling"
// and "ARM64 exception handling" (prolog, epilog, leaf, machine frame).
//
// Glossary. Trust says how a frame was found. Stop says why a walk ended.
// An *exact* instruction pointer is one at which the thread was interrupted
// (the top frame, and the frame below a signal frame); every other one is a
// return address, and tables are looked up with one byte less.
//
// Strategy: values only. Everything above a walker holds a State and a Walker and asks
// once a block; a doubt is carried along in the State, so that no caller can forget it,
// and so is how many stacks the walk has left for others.
//
// Known gaps: two architectures, both little endian with words of eight bytes.
package unwind

// Trust says how a frame was found. Its values stand in recordings: new ones go
// to the end.
type Trust uint8

const (
	TrustNone         Trust = iota // not a frame
	TrustContext                   // the thread's own register context
	TrustCFI                       // stepped here by DWARF call frame information
	TrustUnwindInfo                // stepped here by PE unwind data
	TrustEpilog                    // stepped here by decoding a PE x64 epilog
	TrustCLR                       // reported by the CLR's own walker
	TrustLeaf                      // by the leaf rule where the platform defines it, or as code bytes prove
	TrustFramePointer              // by a checked frame-pointer step: doubtful
	_                              // was a scan of the stack, which no walker makes; recordings keep the number
	TrustCode                      // by following the code one way: doubtful, but seldom wrong
	TrustOutside                   // in no known module or managed code, whatever rule led here: doubtful
)

// Doubtful reports whether a frame so found is a guess.
func (t Trust) Doubtful() bool { return t == TrustNone || t >= TrustFramePointer }

// Then is the trust of a frame reached by step from a frame of trust t: the
// doubt of a frame stays with all that was reached from it.
func (t Trust) Then(step Trust) Trust {
	if t.Doubtful() {
		return t
	}
	return step
}

var trustNames = [...]string{"none", "context", "cfi", "unwind-info", "epilog", "clr", "leaf", "frame-pointer", "scan", "code", "outside"}

func (t Trust) String() string {
	if int(t) < len(trustNames) {
		return trustNames[t]
	}
	return "trust?"
}

// Kind says what runs in a frame.
type Kind uint8

const (
	KindNative  Kind = iota // code of a module with native unwind data
	KindManaged             // code the CLR compiled or loaded precompiled
	KindStub                // code the CLR made that is no method: IL stub, precode, helper
	KindSignal              // a signal trampoline; the frame below it is exact
	KindGap                 // frames are missing here; see the reason beside it
	KindJIT                 // code that another code generator than the CLR made at run time
	KindAsync               // on no stack: an async method that waits for what runs in the frames before
)

var kindNames = [...]string{"native", "managed", "stub", "signal", "gap", "jit", "async"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind?"
}

// Frame is one activation, leaf first in a walk's output.
type Frame struct {
	IP     uint64 // instruction pointer: interrupted ip if Exact, else the return address
	SP     uint64 // stack pointer at IP (for a return address: after the return)
	FP     uint64 // frame pointer register at IP (RBP, x29)
	CFA    uint64 // canonical frame address: SP of the caller after return; 0 if the walk ended here
	Module int32  // index into the module table, -1 if none
	Kind   Kind
	Trust  Trust
	Exact  bool
}

// Lookup returns the address to look up in tables and symbols: the byte of the
// call instruction for a return address, IP itself if exact.
func (f *Frame) Lookup() uint64 { return f.Address().Lookup() }

// Address is where the frame stands.
func (f *Frame) Address() Address { return Address{f.IP, f.Exact} }

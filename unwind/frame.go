// Package unwind holds the types that both architectures share: frames, their trust, the reasons why a walk
// ends, and the bounds of a walk.
//
// Sources: the vocabulary follows the DWARF 5 standard (section 6.4, "Call Frame Information": CFA, row,
// return address) and Microsoft's "x64 exception handling" and "ARM64 exception handling" (prolog, epilog,
// leaf, machine frame).
//
// Glossary. Trust is how a frame was found. Stop is why a walk ended. An *exact* instruction pointer is one
// at which the thread was interrupted (the top frame, and the frame below a signal frame). Every other one is
// a return address, and tables are looked up with one byte less.
//
// Strategy: values only. Code above a walker holds a State and a Walker and calls the walker once per block.
// The State carries the trust of its frame, so that no caller can lose a doubt. It also counts the stacks
// that the walk has left.
//
// Known gaps: two architectures, both little endian with words of eight bytes.
package unwind

// Trust is how a frame was found. Recordings contain its values: add new ones at the end.
type Trust uint8

const (
	TrustNone         Trust = iota // not a frame
	TrustContext                   // the thread's own register context
	TrustCFI                       // stepped here by DWARF call frame information
	TrustUnwindInfo                // stepped here by PE unwind data
	TrustEpilog                    // stepped here by decoding a PE x64 epilog
	TrustCLR                       // reported by the CLR's own walker
	TrustLeaf                      // by the leaf rule of the platform, or proven by the code
	TrustFramePointer              // by a checked frame-pointer step: doubtful
	// reserved: older recordings use this number for frames found by a scan of the stack
	_
	TrustCode    // by following the code in one direction: doubtful, but rarely wrong
	TrustOutside // in no known module or managed code, whatever rule was used: doubtful
	TrustLater   // read after the sample, when the thread may have made other calls: doubtful
)

// Doubtful reports whether a frame with this trust is a guess.
func (t Trust) Doubtful() bool { return t == TrustNone || t >= TrustFramePointer }

// Then returns the trust of a frame reached by step from a frame of trust t: all frames reached from a
// doubtful frame are doubtful.
func (t Trust) Then(step Trust) Trust {
	if t.Doubtful() {
		return t
	}
	return step
}

var trustNames = [...]string{"none", "context", "cfi", "unwind-info", "epilog", "clr", "leaf",
	"frame-pointer", "scan", "code", "outside", "later"}

func (t Trust) String() string {
	if int(t) < len(trustNames) {
		return trustNames[t]
	}
	return "trust?"
}

// Kind is the kind of code of a frame.
type Kind uint8

const (
	KindNative  Kind = iota // code of a module with native unwind data
	KindManaged             // code the CLR compiled or loaded precompiled
	KindStub                // code of the CLR that is not a method: IL stub, precode, helper
	KindSignal              // a signal trampoline; the frame below it is exact
	KindGap                 // frames are missing here; merge.Frame.Gap is the reason
	KindJIT                 // code made at run time by a code generator other than the CLR
	KindAsync               // on no stack: an async method that waits for the code in the frames before
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
	CFA    uint64 // canonical frame address: SP of the caller after return; 0 if unknown, or the last frame's
	Module int32  // index into the module table, -1 if none
	Kind   Kind
	Trust  Trust
	Exact  bool
}

// Lookup returns the address to look up in tables and symbols: IP itself if exact, the last byte of the call
// for a return address.
func (f *Frame) Lookup() uint64 { return f.Address().Lookup() }

// Address returns the frame's position.
func (f *Frame) Address() Address { return Address{f.IP, f.Exact} }

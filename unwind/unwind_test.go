package unwind

import (
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestDoubt(t *testing.T) {
	for trust, want := range map[Trust]bool{TrustNone: true, TrustContext: false,
		TrustCFI: false, TrustUnwindInfo: false,
		TrustEpilog: false, TrustCLR: false, TrustLeaf: false, TrustFramePointer: true, TrustCode: true,
		TrustOutside: true, TrustLater: true, 200: true} {
		expect.Equal(t, trust.Doubtful(), want, "%v: doubtful", trust)
	}
	expect.Equal(t, TrustFramePointer.Then(TrustCFI), TrustFramePointer, "a frame reached from a guess")
	expect.Equal(t, TrustCLR.Then(TrustCFI), TrustCFI, "a frame stepped to by call frame information")
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		f    Frame
		want uint64
	}{{Frame{IP: 0x100}, 0xff}, {Frame{IP: 0x100, Exact: true}, 0x100}, {Frame{}, 0}} {
		expect.Equal(t, c.f.Lookup(), c.want, c.f)
	}
}

func TestEveryValueHasAName(t *testing.T) {
	for s := StopNone; s <= NullReturn; s++ {
		expect.True(t, s.String() != "stop?" && s.String() != "", "stop %d has no name", s)
	}
	for k := KindNative; k <= KindGap; k++ {
		expect.True(t, k.String() != "kind?", "kind %d has no name", k)
	}
	for x := TrustNone; x <= TrustLater; x++ {
		expect.True(t, x.String() != "trust?", "trust %d has no name", x)
	}
	expect.True(t, Stop(99).String() == "stop?" && Kind(99).String() == "kind?" &&
		Trust(99).String() == "trust?", "an unknown value has a name")
}

// Frames are written in the suspended window, so their size must not grow unnoticed.
func TestFrameSize(t *testing.T) {
	n := unsafe.Sizeof(Frame{})
	expect.True(t, n == 40, "a Frame has %d bytes", n)
}

package context

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// sample has a different value in every register.
func sample() AMD64 {
	r := AMD64{RIP: 0x1111, Known: AMD64All}
	for i := range r.GPR {
		r.GPR[i] = 0xa000 + uint64(i)
	}
	for i := range r.XMM {
		r.XMM[i] = XMM{0xb000 + uint64(i), 0xc000 + uint64(i)}
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	for l := Win32AMD64; l <= lastAMD64Layout; l++ {
		t.Run(l.String(), func(t *testing.T) {
			want := sample()
			b := make([]byte, l.Size()+2000) // a newer runtime's context is longer
			must.Do(t, writeAMD64(l, b, &want))
			got := must.Get(readAMD64(l, b))(t)
			if amd64Layouts[l].xmm < 0 {
				want.XMM, want.Known = [10]XMM{}, 1<<16-1
			}
			if got != want {
				t.Errorf("got %x\nwant %x", got, want)
			}
		})
	}
}

// The offsets in the public headers, for one register each that a shift by one slot would break.
func TestKnownOffsets(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		off    int
		get    func(*AMD64) uint64
	}{
		{Win32AMD64, 0xf8, func(r *AMD64) uint64 { return r.RIP }},
		{Win32AMD64, 0x98, (*AMD64).SP},
		{Win32AMD64, 0x200, func(r *AMD64) uint64 { return r.XMM[0][0] }},
		{PALAMD64, 0xa0, (*AMD64).FP},
		{PALAMD64, 0xf0, func(r *AMD64) uint64 { return r.GPR[R15] }},
		{UContextAMD64, 168, func(r *AMD64) uint64 { return r.RIP }},
		{UContextAMD64, 160, (*AMD64).SP},
		{PRStatusAMD64, 112 + 128, func(r *AMD64) uint64 { return r.RIP }},
		{PRStatusAMD64, 112 + 152, (*AMD64).SP},
		{UserRegsAMD64, 32, (*AMD64).FP},
	} {
		b := make([]byte, 4096)
		b[c.off] = 0x5a
		r, err := readAMD64(c.layout, b)
		if err != nil || c.get(&r) != 0x5a {
			t.Errorf("%s: offset %#x read as %#x, %v", c.layout, c.off, c.get(&r), err)
		}
	}
}

func TestUnknownRegistersAreKept(t *testing.T) {
	b := make([]byte, Win32AMD64.Size())
	for i := range b {
		b[i] = 0xee
	}
	r := AMD64{RIP: 1, Known: 1 << RBX}
	must.Do(t, writeAMD64(Win32AMD64, b, &r))
	got, _ := readAMD64(Win32AMD64, b)
	if got.GPR[RBX] != 0 || got.GPR[RAX] != 0xeeeeeeeeeeeeeeee {
		t.Errorf("rbx %#x, rax %#x", got.GPR[RBX], got.GPR[RAX])
	}
}

func TestShortContext(t *testing.T) {
	var size *SizeError
	for l := Win32AMD64; l <= lastAMD64Layout; l++ {
		if _, err := readAMD64(l, make([]byte, l.Size()-1)); !errors.As(err, &size) || size.Min != l.Size() {
			t.Errorf("%s: %v", l, err)
		}
	}
	for l := Win32ARM64; l <= lastLayout; l++ {
		if _, err := readARM64(l, make([]byte, l.Size()-1)); !errors.As(err, &size) || size.Min != l.Size() {
			t.Errorf("%s: %v", l, err)
		}
	}
}

func TestConversionDoesNotAllocate(t *testing.T) {
	b, r := make([]byte, 4096), sample()
	if n := testing.AllocsPerRun(100, func() { writeAMD64(PALAMD64, b, &r); r, _ = readAMD64(PALAMD64, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

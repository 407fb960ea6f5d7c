package context

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
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
			expect.Equal(t, got, want)
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
		expect.True(t, err == nil && c.get(&r) == 0x5a,
			"%s: offset %#x read as %#x, %v", c.layout, c.off, c.get(&r), err)
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
	expect.True(t, got.GPR[RBX] == 0 && got.GPR[RAX] == 0xeeeeeeeeeeeeeeee,
		"rbx %#x, rax %#x", got.GPR[RBX], got.GPR[RAX])
}

func TestShortContext(t *testing.T) {
	var size *SizeError
	for l := Win32AMD64; l <= lastAMD64Layout; l++ {
		_, err := readAMD64(l, make([]byte, l.Size()-1))
		expect.True(t, errors.As(err, &size) && size.Min == l.Size(), "%s: %v", l, err)
	}
	for l := Win32ARM64; l <= lastLayout; l++ {
		_, err := readARM64(l, make([]byte, l.Size()-1))
		expect.True(t, errors.As(err, &size) && size.Min == l.Size(), "%s: %v", l, err)
	}
}

func TestConversionDoesNotAllocate(t *testing.T) {
	b, r := make([]byte, 4096), sample()
	n := testing.AllocsPerRun(100,
		func() { writeAMD64(PALAMD64, b, &r); r, _ = readAMD64(PALAMD64, b) })
	expect.True(t, n == 0, "%v allocations", n)
}

// sampleARM64 has a different value in every register.
func sampleARM64() ARM64 {
	r := ARM64{PC: 0x1111, Sp: 0x2222, Known: ARM64All}
	for i := range r.X {
		r.X[i] = 0xa000 + uint64(i)
	}
	for i := range r.D {
		r.D[i] = 0xd000 + uint64(i)
	}
	return r
}

// arm64Context is an empty context of layout l, longer than needed, with the extension records that the
// kernel writes: an unknown one, FPSIMD, the end.
func arm64Context(l Layout) []byte {
	b := make([]byte, 8192)
	if l == UContextARM64 {
		copy(b[464:], record(0x45535201, 16))
		copy(b[480:], record(fpsimdMagic, 528))
	}
	return b
}

func record(magic, size uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, magic), size)
}

func TestRoundTripARM64(t *testing.T) {
	for l := Win32ARM64; l <= lastLayout; l++ {
		t.Run(l.String(), func(t *testing.T) {
			want, b := sampleARM64(), arm64Context(l)
			must.Do(t, writeARM64(l, b, &want))
			got := must.Get(readARM64(l, b))(t)
			if l == PRStatusARM64 || l == UserRegsARM64 {
				want.D, want.Known = [8]uint64{}, 1<<31-1
			}
			expect.Equal(t, got, want)
		})
	}
}

// The offsets in the public headers, for one register each that a shift by one slot would break.
func TestKnownOffsetsARM64(t *testing.T) {
	pc := func(r *ARM64) uint64 { return r.PC }
	x := func(i int) func(r *ARM64) uint64 { return func(r *ARM64) uint64 { return r.X[i] } }
	for _, c := range []struct {
		layout Layout
		off    int
		get    func(*ARM64) uint64
	}{
		{Win32ARM64, 0x008, x(0)},
		{Win32ARM64, 0x0e8, x(28)},
		{Win32ARM64, 0x0f0, (*ARM64).FP},
		{Win32ARM64, 0x0f8, x(30)},
		{Win32ARM64, 0x100, (*ARM64).SP},
		{Win32ARM64, 0x108, pc},
		{Win32ARM64, 0x190, func(r *ARM64) uint64 { return r.D[0] }},
		{Win32ARM64, 0x200, func(r *ARM64) uint64 { return r.D[7] }},
		{PALARM64, 0x0a0, x(19)},
		{PALARM64, 0x108, pc},
		{UContextARM64, 184, x(0)},
		{UContextARM64, 432, (*ARM64).SP},
		{UContextARM64, 440, pc},
		{UContextARM64, 480 + 16 + 8*16, func(r *ARM64) uint64 { return r.D[0] }},
		{PRStatusARM64, 112 + 29*8, (*ARM64).FP},
		{PRStatusARM64, 112 + 32*8, pc},
		{UserRegsARM64, 31 * 8, (*ARM64).SP},
		{UserRegsARM64, 0, x(0)},
	} {
		b := arm64Context(c.layout)
		b[c.off] = 0x5a
		r, err := readARM64(c.layout, b)
		expect.True(t, err == nil && c.get(&r) == 0x5a,
			"%s: offset %#x read as %#x, %v", c.layout, c.off, c.get(&r), err)
	}
}

func TestSizesARM64(t *testing.T) {
	for l, want := range map[Layout]int{Win32ARM64: 912, PALARM64: 912, UContextARM64: 464,
		PRStatusARM64: 384, UserRegsARM64: 272, lastLayout + 1: 0} {
		expect.Equal(t, l.Size(), want, "%s: bytes", l)
	}
}

func TestContextFlagsARM64(t *testing.T) {
	b := make([]byte, 912)
	err := writeARM64(Win32ARM64, b, &ARM64{})
	expect.True(t, err == nil && bytes.Equal(b[:8], []byte{7, 0, 0x40, 0, 0, 0, 0, 0}), "% x, %v", b[:8], err)
}

func TestUnknownRegistersAreKeptARM64(t *testing.T) {
	b := bytes.Repeat([]byte{0xee}, Win32ARM64.Size())
	r := ARM64{PC: 1, Sp: 2, Known: 1<<19 | 1<<33}
	must.Do(t, writeARM64(Win32ARM64, b, &r))
	const kept = 0xeeeeeeeeeeeeeeee
	got, _ := readARM64(Win32ARM64, b)
	expect.True(t, got.X[19] == 0 && got.X[0] == kept && got.D[1] == 0 && got.D[0] == kept,
		"x19 %#x, x0 %#x, d9 %#x, d8 %#x", got.X[19], got.X[0], got.D[1], got.D[0])
	expect.Equal(t, binary.LittleEndian.Uint64(b[0x1a8:]), kept, "the upper half of v9 was written")
}

// The extension records of a signal frame may be malformed.
func TestExtensionRecords(t *testing.T) {
	for _, c := range []struct {
		name    string
		records []byte
		room    int // bytes behind the registers
		known   bool
	}{
		{"the vectors alone", record(fpsimdMagic, 528), 528, true},
		{"behind another", append(record(0x45585401, 32),
			append(make([]byte, 24), record(fpsimdMagic, 528)...)...), 32 + 528, true},
		{"no room for records", nil, 0, false},
		{"half a header", record(fpsimdMagic, 528)[:4], 4, false},
		{"an end at once", record(0, 0), 4096, false},
		{"cut", record(fpsimdMagic, 528), 527, false},
		{"shorter than the registers", record(fpsimdMagic, 512), 4096, false},
		{"size 0", record(0x45535201, 0), 4096, false},
		{"an odd size", record(0x45535201, 24), 4096, false},
		{"a size that wraps", record(0x45535201, 0xfffffff0), 4096, false},
	} {
		b := make([]byte, 464+c.room)
		copy(b[464:], c.records)
		r, err := readARM64(UContextARM64, b)
		expect.True(t, err == nil && (r.Known>>32 != 0) == c.known, "%s: known %#x, %v", c.name, r.Known, err)
	}
}

func TestConversionDoesNotAllocateARM64(t *testing.T) {
	b, r := arm64Context(UContextARM64), sampleARM64()
	n := testing.AllocsPerRun(100,
		func() { writeARM64(UContextARM64, b, &r); r, _ = readARM64(UContextARM64, b) })
	expect.True(t, n == 0, "%v allocations", n)
}

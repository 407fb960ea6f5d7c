package buf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestFixed(t *testing.T) {
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	r := At(data, 0)
	must.True(t, r.U8() == 1 && r.U16() == 0x302 && r.U32() == 0x7060504 && r.Pos() == 7 && r.Len() == 2 &&
		r.OK(), "%+v", r)
	expect.True(t, r.U64() == 0 && r.fault == FaultShort && r.Pos() == 7, "short read: %+v", r)
	expect.True(t, r.U8() == 0 && r.Pos() == 7, "a failed reader went on")
}

func TestEveryReadAtTheEnd(t *testing.T) {
	for name, read := range map[string]func(*Reader){
		"U8": func(r *Reader) { r.U8() }, "U16": func(r *Reader) { r.U16() },
		"U32": func(r *Reader) { r.U32() }, "U64": func(r *Reader) { r.U64() },
		"ULEB": func(r *Reader) { r.ULEB() }, "SLEB": func(r *Reader) { r.SLEB() },
		"Bytes": func(r *Reader) { r.Bytes(1) },
		"Skip":  func(r *Reader) { r.Skip(math.MaxUint64) }, "CString": func(r *Reader) { r.CString(9) },
	} {
		r := At(nil, 0)
		read(&r)
		expect.True(t, !r.OK(), "%s of nothing is no failure", name)
	}
	r := At([]byte{1}, 2)
	expect.True(t, !r.OK(), "a start outside is no failure")
}

func TestLEB(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     []byte
		u     uint64
		s     int64
		uf, f Fault
	}{
		{"0", []byte{0}, 0, 0, 0, 0},
		{"127", []byte{0xff, 0}, 127, 127, 0, 0},
		{"-1", []byte{0x7f}, 127, -1, 0, 0},
		{"padded", []byte{0x81, 0x80, 0x80, 0}, 1, 1, 0, 0},
		{"largest", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
			math.MaxUint64, 0, 0, FaultLEB},
		{"least", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f},
			0, math.MinInt64, FaultLEB, 0},
		{"65 bits", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2}, 0, 0,
			FaultLEB, FaultLEB},
		{"eleven bytes", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 0, 0,
			FaultLEB, FaultLEB},
		{"cut", []byte{0x80, 0x80}, 0, 0, FaultShort, FaultShort},
	} {
		r := At(c.b, 0)
		v := r.ULEB()
		expect.True(t, v == c.u && r.fault == c.uf, "%s: ULEB %#x %v", c.name, v, r.fault)
		r = At(c.b, 0)
		if v := r.SLEB(); v != c.s || r.fault != c.f {
			t.Errorf("%s: SLEB %#x %v", c.name, v, r.fault)
		}
	}
}

func TestCString(t *testing.T) {
	r := At([]byte("zR\x00x"), 0)
	s := r.CString(2)
	expect.True(t, string(s) == "zR" && r.Pos() == 3, "%q at %d", s, r.Pos())
	s = r.CString(2)
	expect.True(t, s == nil && !r.OK(), "unterminated: %q", s)
}

func TestCStringLimit(t *testing.T) {
	for _, c := range []struct {
		limit int
		ok    bool
	}{{3, true}, {2, false}, {0, false}} {
		r := At([]byte("abc\x00"), 0)
		if s := r.CString(c.limit); (string(s) == "abc") != c.ok || r.OK() != c.ok {
			t.Errorf("limit %d: %q, %v", c.limit, s, r.fault)
		}
	}
}

// TestFailedIsEmpty: a loop over what is left of a reader ends, whatever failed
// in it and whether or not anybody looks.
func TestFailedIsEmpty(t *testing.T) {
	long := bytes.Repeat([]byte{0x80}, 64)
	for name, fail := range map[string]func(*Reader){
		"Skip": func(r *Reader) { r.Skip(65) }, "Bytes": func(r *Reader) { r.Bytes(math.MaxUint64) },
		"ULEB": func(r *Reader) { r.ULEB() },
		"SLEB": func(r *Reader) { r.SLEB() }, "CString": func(r *Reader) { r.CString(8) },
		"Fail": func(r *Reader) { r.Fail(FaultShort) },
	} {
		r := At(long, 3)
		fail(&r)
		expect.True(t, !r.OK() && r.Len() == 0 && r.Pos() == 3,
			"%s: %v, %d bytes left at %d", name, r.fault, r.Len(), r.Pos())
		expect.True(t, r.U8() == 0 && r.U64() == 0 && r.ULEB() == 0 && r.SLEB() == 0 && r.Bytes(1) == nil &&
			r.CString(1) == nil && r.Pos() == 3, "%s: a failed reader went on", name)
	}
}

// zdebug makes the contents of a .zdebug section, as GNU as compressed them before
// SHF_COMPRESSED.
func zdebug(size uint64, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString("ZLIB")
	binary.Write(&b, binary.BigEndian, size)
	z := zlib.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func TestExpandGNU(t *testing.T) {
	data := bytes.Repeat([]byte("frame "), 50)
	n := uint64(len(data))
	whole := zdebug(n, data)
	for _, c := range []struct {
		name  string
		raw   []byte
		limit uint64
		ok    bool
	}{
		{"whole", whole, n, true},
		{"above the limit", whole, n - 1, false},
		{"shorter than stated", zdebug(n+1, data), 1 << 20, false},
		{"longer than stated", zdebug(n-1, data), 1 << 20, false},
		{"an impossible size", zdebug(1<<60, data), 1 << 30, false},
		{"cut", whole[:len(whole)-5], n, false},
		{"no head", whole[:11], n, false},
		{"other head", append([]byte("ZLIC"), whole[4:]...), n, false},
		{"no stream", whole[:12], n, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ExpandGNU(c.raw, c.limit)
			if (err == nil) != c.ok || c.ok && !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestCheckExpansion(t *testing.T) {
	for _, c := range []struct {
		name        string
		n           int
		size, limit uint64
		ok          bool
	}{
		{"small, of any ratio", 20, freeSize, 1 << 30, true},
		{"small, above the limit", 20, 100, 99, false},
		{"at the ratio", 10_000, MaxRatio * 10_000, 1 << 30, true},
		{"above the ratio", 10_000, MaxRatio * 10_001, 1 << 30, false},
		{"at the limit", 1 << 20, 1 << 21, 1 << 21, true},
		{"above the limit", 1 << 20, 1<<21 + 1, 1 << 21, false},
		{"every bit", 1 << 20, 1<<64 - 1, 1<<64 - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := CheckExpansion(c.n, c.size, c.limit); (err == nil) != c.ok ||
				!c.ok && !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		})
	}
}

// TestExpandZlibMemory counts what an expansion allocates: what it expands to,
// and a decoder.
func TestExpandZlibMemory(t *testing.T) {
	data := bytes.Repeat([]byte("frames of functions that are alike, "), 1<<16)
	rand.New(rand.NewPCG(1, 2)).Shuffle(1<<18, func(i, j int) { data[i], data[j] = data[j], data[i] })
	raw := zdebug(uint64(len(data)), data)[12:]
	before, after := runtime.MemStats{}, runtime.MemStats{}
	runtime.ReadMemStats(&before)
	out, err := ExpandZlib(raw, uint64(len(data)), 1<<30)
	runtime.ReadMemStats(&after)
	must.True(t, err == nil && bytes.Equal(out, data), "%v %v", len(out), err)
	got := int(after.TotalAlloc - before.TotalAlloc)
	expect.True(t, got <= len(data)+1<<17, "%d bytes were allocated for %d", got, len(data))
}

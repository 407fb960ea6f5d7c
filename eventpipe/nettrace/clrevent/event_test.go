package clrevent

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func raw(t *testing.T, s string) []byte {
	t.Helper()
	return must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}

func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		provider    string
		id, version uint32
		want        Kind
	}{
		{Runtime, 81, 2, ContentionStart}, {Runtime, 81, 9, ContentionStart}, {Runtime, 144, 1, MethodUnload},
		{Rundown, 144, 1, MethodListed},
		{Rundown, 143, 1, MethodListed}, {Rundown, 301, 0, None}, {"Other", 301, 0, None},
		{Runtime, 152, 0, None}, {EventPipe, 1, 1, ProcessInfo},
	} {
		expect.Equal(t, KindOf(c.provider, c.id, c.version), c.want, "%s %d v%d", c.provider, c.id, c.version)
	}
}

// TestDecode: complete payloads decode. Payloads truncated before the last read field do not.
func TestDecode(t *testing.T) {
	const lock8 = "00 0100 1000000000000000 2000000000000000 0700000000000000"
	const method = "0100000000000000 0200000000000000 0010000000000000 40000000 03000006 08000000 4e000000 6d000000 0000"
	for _, c := range []struct {
		name   string
		in     string
		spare  int // bytes at the end that are not read
		decode func([]byte) (any, bool)
		want   any
	}{
		{"ContentionStart v2", lock8, 0,
			func(b []byte) (any, bool) { return pair(DecodeContention(b, 2, 8)) },
			Contention{Lock: 16, Object: 32, Owner: 7}},
		{"ContentionStart v2, 32 bits", "01 0100 10000000 20000000 0700000000000000", 0,
			func(b []byte) (any, bool) { return pair(DecodeContention(b, 2, 4)) },
			Contention{Native: true, Lock: 16, Object: 32, Owner: 7}},
		{"ContentionStart v1", "00 0100", 0,
			func(b []byte) (any, bool) { return pair(DecodeContention(b, 1, 8)) }, Contention{}},
		{"ContentionStop v1", "00 0100 000000000000f83f", 0,
			func(b []byte) (any, bool) { return pair(DecodeContentionStop(b, 1)) }, int64(1)},
		{"ContentionStop v1, not a number", "00 0100 000000000000f87f", 0,
			func(b []byte) (any, bool) { return pair(DecodeContentionStop(b, 1)) }, int64(0)},
		{"ContentionStop v0", "00 0100", 0,
			func(b []byte) (any, bool) { return pair(DecodeContentionStop(b, 0)) }, int64(0)},
		{"WaitStart", "01 3000000000000000 0100", 2,
			func(b []byte) (any, bool) { return pair(DecodeWait(b, 8)) }, Wait{true, 48}},
		{"WaitStart, 32 bits", "00 00000000 0100", 2,
			func(b []byte) (any, bool) { return pair(DecodeWait(b, 4)) }, Wait{}},
		{"Method", method + "0100", 2, func(b []byte) (any, bool) { return pair(DecodeMethod(b)) },
			Method{ID: 1, Module: 2, Start: 4096, Size: 64, Token: 0x6000003,
				Flags: 8, Namespace: "N", Name: "m"}},
		{"Method, half of a pair, and beyond Latin",
			"0100000000000000 0200000000000000 0010000000000000 40000000 03000006 08000000 00d86100 0000 000100dc 0000 0000 0100", 2,
			func(b []byte) (any, bool) { return pair(DecodeMethod(b)) },
			Method{ID: 1, Module: 2, Start: 4096, Size: 64, Token: 0x6000003, Flags: 8,
				Namespace: "\ufffda", Name: "\u0100\ufffd"}},
		{"Module", "0100000000000000 0200000000000000 00000000 00000000 61000000 0000", 0,
			func(b []byte) (any, bool) { return pair(DecodeModule(b)) },
			Module{ID: 1, Assembly: 2, IL: "a"}},
		{"Thread", "0100000000000000 0200000000000000 00000000 03000000 04000000 0100", 2,
			func(b []byte) (any, bool) { return pair(DecodeThread(b)) },
			Thread{ID: 1, Index: 3, TID: 4}},
		{"Process", "61000000 62000000 63000000", 0,
			func(b []byte) (any, bool) { return pair(DecodeProcess(b)) }, Process{"a", "b", "c"}},
		{"Process of .NET Core 3", "61000000", 0,
			func(b []byte) (any, bool) { return pair(DecodeProcess(b)) }, Process{CommandLine: "a"}},
		{"Runtime", "0900 0200 0000000000000000 0900 0000 0500 0700 00000000 00 61000000" +
			strings.Repeat("00", 16) + "2f000000", 0,
			func(b []byte) (any, bool) { return pair(DecodeRuntime(b)) },
			Info{Version: [4]uint16{9, 0, 5, 7}, CommandLine: "a", Library: "/"}},
		{"Counter, a mean", "61000000 6e000000 000000000000f83f" + strings.Repeat("00", 32) + "0000" +
			"4d00650061006e000000", 0,
			func(b []byte) (any, bool) { return pair(DecodeCounter(b)) }, Counter{"a", 1.5}},
		{"Counter, an increment",
			"61000000 6e000000 73000000 000000000000f83f 00000000 0000 0000 53007500 6d000000", 0,
			func(b []byte) (any, bool) { return pair(DecodeCounter(b)) }, Counter{"a", 1.5}},
		{"Suspend", "01000000 00000000", 4,
			func(b []byte) (any, bool) { return pair(DecodeSuspend(b)) }, true},
		{"Sample", "02000000", 0, func(b []byte) (any, bool) { return pair(DecodeSample(b)) }, true},
		{"Collection", "01000000 02000000 03000000 01000000 0100", 2,
			func(b []byte) (any, bool) { return pair(DecodeCollection(b)) }, Collection{1, 2, 3, 1}},
		{"JITStart", "0100000000000000 0200000000000000 03000006 10000000 4e000000 6d000000 0000", 2,
			func(b []byte) (any, bool) { return pair(DecodeJITStart(b)) },
			Method{ID: 1, Module: 2, Token: 0x6000003, Namespace: "N", Name: "m"}},
	} {
		in := raw(t, c.in)
		got, ok := c.decode(in)
		d := cmptest.Diff(c.want, got)
		expect.True(t, ok && d == "", "%s: %v\n%s", c.name, ok, d)
		for n := range len(in) - c.spare {
			if _, ok := c.decode(in[:n]); ok && !(c.name == "Process" && n == 4) { // of .NET Core 3
				t.Errorf("%s, cut at %d, decodes", c.name, n)
			}
		}
	}
}

func pair[T any](v T, ok bool) (any, bool) { return v, ok }

func TestPool(t *testing.T) {
	const adjusted = "000000000000f03f 05000000 06000000 0100"
	a, ok := DecodeAdjustment(raw(t, adjusted))
	expect.True(t, ok && a == (Adjustment{5, true}), "%+v, %v", a, ok)
	a, ok = DecodeAdjustment(raw(t, "000000000000f03f 05000000 03000000 0100"))
	expect.True(t, ok && a == (Adjustment{5, false}), "climbing: %+v, %v", a, ok)
	for _, c := range []struct {
		name    string
		in      string
		pointer int
		want    uint64
	}{
		{"class library", "8877665544332211", 8, 0x1122334455667788},
		{"class library, 32 bit", "8877665544332211", 4, 0x1122334455667788},
		{"runtime", "8877665544332211 0100", 8, 0x1122334455667788},
		{"runtime, 32 bit", "44332211 0100", 4, 0x11223344},
	} {
		whole := raw(t, c.in)
		item, ok := DecodeWork(whole, c.pointer)
		expect.True(t, ok && item == c.want, "%s: %#x, %v", c.name, item, ok)
		_, ok = DecodeWork(whole[:3], c.pointer)
		expect.True(t, !ok, "%s: 3 bytes are a number", c.name)
	}
	for n := range raw(t, adjusted) {
		_, ok := DecodeAdjustment(raw(t, adjusted)[:n])
		expect.True(t, !ok, "an adjustment of %d bytes", n)
	}
}

// Samples of memory and exceptions decode. Truncated payloads are refused, except for an exception's texts,
// which are truncated too.
func TestSamples(t *testing.T) {
	const node = "4e00 6f00 6400 6500 0000" // Node
	const tick = "d0200300 00000000 0100 e020030000000000 8877665544332211 " + node +
		" 01000000 1000000000000000 3000000000000000"
	a, ok := DecodeTick(raw(t, tick), 4, 8)
	want := Allocation{0x1122334455667788, "Node", 48, 0x320e0}
	expect.True(t, ok && a == want, "%+v, %v; want %+v", a, ok, want)
	a, ok = DecodeTick(raw(t, "d0200300 00000000 0100"), 0, 8)
	expect.True(t, ok && a.Weight == 0x320d0, "version 0: %+v, %v", a, ok)
	whole := raw(t, tick)
	for n := range whole {
		_, ok := DecodeTick(whole[:n], 4, 8)
		expect.True(t, !ok, "a tick of %d bytes of %d", n, len(whole))
	}
	const sampled = "00000000 0100 8877665544332211 " + node + " 1000000000000000 "
	for _, c := range []struct {
		name, size string
		least      uint64
		most       uint64
	}{
		{"small", "3000000000000000", SampleMean, SampleMean + 48}, // one of about 102,400 bytes
		{"as large as the mean", "0090010000000000", 161000, 163000},
		{"large", "4042 0f0000000000", 1_000_000, 1_000_100}, // almost always sampled
		{"of no size", "0000000000000000", SampleMean - 1, SampleMean + 1},
		{"absurd", "ffffffffffffffff", 1 << 50, 1 << 50},
	} {
		a, ok := DecodeSampled(raw(t, sampled+c.size), 8)
		expect.True(t, ok && a.Name == "Node" && a.Weight >= c.least && a.Weight <= c.most,
			"%s: %+v, %v", c.name, a, ok)
	}
	_, ok = DecodeSampled(raw(t, sampled), 8)
	expect.True(t, !ok, "a sample without a size")
	const thrown = "45000000 7800 7900 0000 0000000000000000 09151380 1000 0100" // E: xy
	for _, c := range []struct {
		name string
		cut  int
		want Exception
		ok   bool
	}{
		{"whole", 0, Exception{"E", "xy", 0x80131509}, true},
		{"cut after the texts", 16, Exception{"E", "xy", 0}, true},
		{"cut in the message", 20, Exception{"E", "x", 0}, true},
		{"cut before the message", 24, Exception{"E", "", 0}, true}, {"nothing", 26, Exception{}, false},
	} {
		b := raw(t, thrown)
		e, ok := DecodeException(b[:len(b)-c.cut], 8)
		expect.True(t, e == c.want && ok == c.ok, "%s: %+v, %v; want %+v", c.name, e, ok, c.want)
	}
}

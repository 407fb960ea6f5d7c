package clrevent

import "testing"

// Samples of memory and exceptions decode. Truncated payloads are refused, except for an exception's texts,
// which are truncated too.
func TestSamples(t *testing.T) {
	const node = "4e00 6f00 6400 6500 0000" // Node
	const tick = "d0200300 00000000 0100 e020030000000000 8877665544332211 " + node + " 01000000 1000000000000000 3000000000000000"
	a, ok := DecodeTick(raw(t, tick), 4, 8)
	if want := (Allocation{0x1122334455667788, "Node", 48, 0x320e0}); !ok || a != want {
		t.Errorf("%+v, %v; want %+v", a, ok, want)
	}
	if a, ok := DecodeTick(raw(t, "d0200300 00000000 0100"), 0, 8); !ok || a.Weight != 0x320d0 {
		t.Errorf("version 0: %+v, %v", a, ok)
	}
	whole := raw(t, tick)
	for n := range whole {
		if _, ok := DecodeTick(whole[:n], 4, 8); ok {
			t.Errorf("a tick of %d bytes of %d", n, len(whole))
		}
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
		if a, ok := DecodeSampled(raw(t, sampled+c.size), 8); !ok || a.Name != "Node" || a.Weight < c.least || a.Weight > c.most {
			t.Errorf("%s: %+v, %v", c.name, a, ok)
		}
	}
	if _, ok := DecodeSampled(raw(t, sampled), 8); ok {
		t.Error("a sample without a size")
	}
	const thrown = "45000000 7800 7900 0000 0000000000000000 09151380 1000 0100" // E: xy
	for _, c := range []struct {
		name string
		cut  int
		want Exception
		ok   bool
	}{
		{"whole", 0, Exception{"E", "xy", 0x80131509}, true}, {"cut after the texts", 16, Exception{"E", "xy", 0}, true},
		{"cut in the message", 20, Exception{"E", "x", 0}, true}, {"cut before the message", 24, Exception{"E", "", 0}, true}, {"nothing", 26, Exception{}, false},
	} {
		b := raw(t, thrown)
		if e, ok := DecodeException(b[:len(b)-c.cut], 8); e != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v; want %+v", c.name, e, ok, c.want)
		}
	}
}

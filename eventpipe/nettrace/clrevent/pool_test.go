package clrevent

import "testing"

func TestPool(t *testing.T) {
	const adjusted = "000000000000f03f 05000000 06000000 0100"
	if a, ok := DecodeAdjustment(raw(t, adjusted)); !ok || a != (Adjustment{5, true}) {
		t.Errorf("%+v, %v", a, ok)
	}
	if a, ok := DecodeAdjustment(raw(t, "000000000000f03f 05000000 03000000 0100")); !ok || a != (Adjustment{5, false}) {
		t.Errorf("climbing: %+v, %v", a, ok)
	}
	for _, c := range []struct {
		name    string
		in      string
		pointer int
		want    uint64
	}{
		{"class library", "8877665544332211", 8, 0x1122334455667788}, {"class library, 32 bit", "8877665544332211", 4, 0x1122334455667788},
		{"runtime", "8877665544332211 0100", 8, 0x1122334455667788}, {"runtime, 32 bit", "44332211 0100", 4, 0x11223344},
	} {
		whole := raw(t, c.in)
		if item, ok := DecodeWork(whole, c.pointer); !ok || item != c.want {
			t.Errorf("%s: %#x, %v", c.name, item, ok)
		}
		if _, ok := DecodeWork(whole[:3], c.pointer); ok {
			t.Errorf("%s: 3 bytes are a number", c.name)
		}
	}
	for n := range raw(t, adjusted) {
		if _, ok := DecodeAdjustment(raw(t, adjusted)[:n]); ok {
			t.Errorf("an adjustment of %d bytes", n)
		}
	}
}

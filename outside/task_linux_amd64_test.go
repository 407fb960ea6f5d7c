package outside

import "testing"

func TestCounters(t *testing.T) {
	for _, c := range []struct {
		text string
		want counters
		ok   bool
	}{
		{"123 45 6\n", counters{123, 45, 6}, true},
		{"0 0 0\n", counters{}, true},
		{"123 45\n", counters{123, 45, 0}, false},
		{"", counters{}, false},
		{"1 2 3 4\n", counters{1, 2, 3}, false},
	} {
		if got, ok := parseCounters([]byte(c.text)); ok != c.ok || got != c.want {
			t.Errorf("%q: %+v, %v", c.text, got, ok)
		}
	}
}

func TestWhere(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   where
		sp, ip uint64
	}{
		{"running\n", running, 0, 0},
		{"202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd10 0x7f0123\n", blocked, 0x7ffd10, 0x7f0123},
		{"-1 0x7ffd10 0x7f0123\n", blocked, 0x7ffd10, 0x7f0123},
		{"-1 sp pc\n", running, 0, 0},
		{"", running, 0, 0},
	} {
		if w, sp, ip := parseWhere(c.text); w != c.want || sp != c.sp || ip != c.ip {
			t.Errorf("%q: %v %#x %#x", c.text, w, sp, ip)
		}
	}
}

package outside

import (
	"slices"
	"testing"
)

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

// A name is read again soon after a thread's birth, and ever more rarely.
func TestRename(t *testing.T) {
	k, read := task{born: 1000e9}, []int64(nil)
	for ms := int64(0); ms <= 100_000; ms += 50 {
		if k.rename(k.born + ms*1e6) {
			read = append(read, ms)
		}
	}
	if want := []int64{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200}; !slices.Equal(read, want) {
		t.Errorf("read after %v ms, want %v", read, want)
	}
}

package wire

import (
	"bytes"
	"io"
	"testing"
)

func TestBuckets(t *testing.T) {
	last := -1
	for _, v := range []uint64{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 1000, 1 << 20, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		i := bucket(v)
		if i < last || upper(i) < v || (v > 8 && upper(i)-v > v/8) {
			t.Errorf("value %d: bucket %d up to %d", v, i, upper(i))
		}
		if bucket(upper(i)) != i || (upper(i) != 1<<64-1 && bucket(upper(i)+1) != i+1) {
			t.Errorf("bucket %d does not end at %d", i, upper(i))
		}
		last = i
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("empty")
	}
	for v := uint64(1); v <= 1000; v++ {
		h.Add(v * 1000)
	}
	for _, c := range []struct {
		q    float64
		want uint64
	}{{0, 1000}, {0.5, 501_000}, {0.99, 991_000}, {1, 1_000_000}} {
		if got := h.Quantile(c.q); got < c.want || got > c.want+c.want/8 || got > h.Max() {
			t.Errorf("quantile %v: %d, want %d to an eighth more", c.q, got, c.want)
		}
	}
}

func TestHistogramTravels(t *testing.T) {
	var a, b, sum Histogram
	w := NewWriter(nil)
	for i, v := range []uint64{3, 900, 1_600_000, 33_000_000} {
		a.Add(v)
		if i == 1 {
			a.Write(w, StatSuspended) // totals are sent again and again
		}
	}
	a.Write(w, StatSuspended)
	w.Stats(StatRetries, 5)
	r := NewReader(bytes.NewReader(w.Bytes()))
	others := 0
	for {
		m, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !b.Set(StatSuspended, m.(*Stats)) {
			others++
		}
	}
	if a != b || others != 1 {
		t.Fatalf("count %d max %d, %d others", b.Count(), b.Max(), others)
	}
	sum.Merge(&a)
	sum.Merge(&b)
	if sum.Count() != 8 || sum.Max() != 33_000_000 {
		t.Fatal(sum.Count(), sum.Max())
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Add(123456) }); n != 0 {
		t.Fatal(n)
	}
}

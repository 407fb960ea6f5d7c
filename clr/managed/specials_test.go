package managed

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// A thread is in the loader if the loader is anywhere on its stack.
func TestLoading(t *testing.T) {
	var s Specials
	s.Loader.Add(memory.Range{Start: 0x1000, End: 0x1100})
	in, out := unwind.Frame{IP: 0x1010}, unwind.Frame{IP: 0x5000}
	for _, c := range []struct {
		name   string
		s      *Specials
		ip     uint64
		frames []unwind.Frame
		want   bool
	}{
		{"on top", &s, 0x1000, nil, true},
		{"below", &s, 0x5000, []unwind.Frame{out, in, out}, true},
		{"a return behind its last call", &s, 0x5000, []unwind.Frame{{IP: 0x1100}}, true},
		{"nowhere", &s, 0x5000, []unwind.Frame{out, out}, false},
		{"behind it", &s, 0x1100, []unwind.Frame{{IP: 0x1100, Exact: true}}, false},
		{"no loader is known", &Specials{}, 0x1000, []unwind.Frame{in}, false},
		{"nothing is known", nil, 0x1000, []unwind.Frame{in}, false},
	} {
		expect.Equal(t, c.s.Loading(c.ip, c.frames), c.want, c.name)
	}
}

// The frame below a dispatcher with correct unwind data is interrupted. A redirect stub has no frame below it
// until its return address is known.
func TestTrueDispatcher(t *testing.T) {
	for name, s := range map[string]*Specials{
		"dispatcher": {Dispatch: places(memory.Range{Start: 0x100, End: 0x200})},
		"redirect": {Redirect: places(memory.Range{Start: 0x1000, End: 0x1100},
			memory.Range{Start: 0x100, End: 0x200}, memory.Range{Start: 8, End: 16})},
	} {
		t.Run(name, func(t *testing.T) { misreads(t, s) })
	}
}

func places(ranges ...memory.Range) (p Places) {
	for _, r := range ranges {
		p.Add(r)
	}
	return p
}

// Every range counts, whatever the order, and nothing between them.
func TestPlaces(t *testing.T) {
	var p Places
	expect.True(t, !p.holds(0), "the zero Places holds 0")
	at := func(i int) uint64 { return 0x100 * uint64(i*5%MaxPlaces+1) } // not sorted
	for i := range MaxPlaces {
		must.True(t, p.Add(memory.Range{Start: at(i), End: at(i) + 0x10}), "no room for the range %d", i)
		for k := range MaxPlaces {
			for _, ip := range []uint64{at(k), at(k) + 0xf} {
				expect.Equal(t, p.holds(ip), k <= i, "%d ranges: %#x", i+1, ip)
			}
			expect.True(t, !p.holds(at(k)-1) && !p.holds(at(k)+0x10),
				"%d ranges: an address beside %#x", i+1, at(k))
		}
	}
	expect.True(t, !p.Add(memory.Range{Start: 1, End: 2}) && !p.holds(1),
		"a range more than there is room for")
}

func misreads(t *testing.T, s *Specials) {
	t.Helper()
	for _, c := range []struct {
		name   string
		frames []unwind.Frame
		exact  bool
		want   bool
	}{
		{"last, exact below", []unwind.Frame{{IP: 1, Exact: true}, {IP: 0x150}}, true, false},
		{"last, not exact below", []unwind.Frame{{IP: 1, Exact: true}, {IP: 0x150}}, false, true},
		{"in the middle, exact below", []unwind.Frame{{IP: 0x150}, {IP: 5, Exact: true}}, false, false},
		{"in the middle, not exact below", []unwind.Frame{{IP: 0x150}, {IP: 5}}, true, true},
		{"a return address just behind it", []unwind.Frame{{IP: 0x200}}, false, true},
		{"the next function's first byte", []unwind.Frame{{IP: 0x200, Exact: true}}, false, false},
		{"none", nil, false, false},
	} {
		i, isStub := s.Misread(c.frames, unwind.Address{Exact: c.exact})
		if got := i >= 0; got != c.want || isStub != (got && s.Redirect.n > 0) ||
			got && c.frames[i].IP&^0xff != 0x100 && c.frames[i].IP != 0x200 {
			t.Errorf("%s: %v, frame %d, stub %v", c.name, got, i, isStub)
		}
	}
}

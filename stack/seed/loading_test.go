package seed

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// A thread is in the loader wherever on its stack the loader stands.
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
		if got := c.s.loading(c.ip, c.frames); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

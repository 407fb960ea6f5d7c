package symbol

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	fde := func(addr uint64) (uint64, uint64, bool) {
		if addr >= 0x500 && addr < 0x540 {
			return 0x500, 0x540, true
		}
		return 0, 0, false
	}
	table := NewTable([]Symbol{
		{Addr: 0x100, Size: 0x100, Name: "outer"},
		{Addr: 0x120, Size: 0x10, Name: "inner"},
		{Addr: 0x128, Size: 0x4, Name: "innermost"},
		{Addr: 0x300, Size: 0x10, Name: "__alias", Rank: RankGlobal},
		{Addr: 0x300, Size: 0x20, Name: "alias", Rank: RankGlobal},
		{Addr: 0x300, Size: 0x20, Name: "local", Rank: RankLocal},
		{Addr: 0x400, Size: 0, Name: "nothing says how long"},
		{Addr: 0x510, Size: 0, Name: "asm"},
		{Addr: 1<<64 - 8, Size: 8, Name: "wraps"},
		{Addr: 0x600, Size: 1, Name: ""},
	}, fde)
	cases := []struct {
		name   string
		addr   uint64
		want   string
		offset uint64
	}{
		{"before all", 0xff, "", 0},
		{"first byte", 0x100, "outer", 0},
		{"inner", 0x125, "inner", 5},
		{"innermost", 0x129, "innermost", 1},
		{"back in inner", 0x12c, "inner", 0xc},
		{"back in outer", 0x1ff, "outer", 0xff},
		{"one past", 0x200, "", 0},
		{"plainest of the aliases", 0x300, "alias", 0},
		{"rest of the aliases", 0x31f, "alias", 0x1f},
		{"no size and no record", 0x400, "", 0},
		{"before the assembly symbol", 0x50f, "", 0},
		{"assembly, by the record", 0x53f, "asm", 0x2f},
		{"past the record", 0x540, "", 0},
		{"a symbol past the end of the world", 1<<64 - 4, "", 0},
		{"no name", 0x600, "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, off, ok := table.Find(c.addr)
			if got != c.want || off != c.offset || ok != (c.want != "") {
				t.Errorf("%#x: %q+%#x %v, want %q+%#x", c.addr, got, off, ok, c.want, c.offset)
			}
		})
	}
}

func TestEmptyTable(t *testing.T) {
	if _, _, ok := NewTable(nil, nil).Find(1); ok {
		t.Error("found something in nothing")
	}
}

// If many symbols start at the end of another, an insertion does not search all of them.
func TestDeepNest(t *testing.T) {
	var s []Symbol
	for i := uint64(0); i < 5000; i++ {
		s = append(s, Symbol{Addr: i, Size: 20000 - 2*i, Name: "f"})
	}
	if _, off, ok := NewTable(s, nil).Find(19999); !ok || off != 19999 {
		t.Errorf("offset %d, %v", off, ok)
	}
}

func TestDemangle(t *testing.T) {
	cases := []struct{ in, want string }{
		{"memcpy", "memcpy"},
		{"_ZN6Thread11DoStackWalkEPv", "Thread::DoStackWalk"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_Z", "_Z"},
	}
	for _, c := range cases {
		if got := Demangle(c.in); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
	long := "_Z" + strings.Repeat("N1a", 10000)
	if Demangle(long) != long {
		t.Error("a name too long was touched")
	}
}

package symbol

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol/clrnames"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
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
			expect.True(t, got == c.want && off == c.offset && ok == (c.want != ""),
				"%#x: %q+%#x %v, want %q+%#x", c.addr, got, off, ok, c.want, c.offset)
		})
	}
}

func TestEmptyTable(t *testing.T) {
	_, _, ok := NewTable(nil, nil).Find(1)
	expect.True(t, !ok, "found something in nothing")
}

// If many symbols start at the end of another, an insertion does not search all of them.
func TestDeepNest(t *testing.T) {
	var s []Symbol
	for i := uint64(0); i < 5000; i++ {
		s = append(s, Symbol{Addr: i, Size: 20000 - 2*i, Name: "f"})
	}
	_, off, ok := NewTable(s, nil).Find(19999)
	expect.True(t, ok && off == 19999, "offset %d, %v", off, ok)
}

// A hostile image nests all of its symbols. A search in them is bounded.
func TestTooDeepNest(t *testing.T) {
	const n = maxNested + 1
	var s []Symbol
	for i := range uint64(n) {
		s = append(s, Symbol{Addr: i, Size: 2*n - 2*i, Name: "f"}) // the ends are 2n, 2n-1, ...
	}
	table := NewTable(s, nil)
	_, off, ok := table.Find(2*n - 2)
	expect.True(t, ok && off == 2*n-3, "the last one that is checked: offset %d, %v", off, ok)
	_, _, ok = table.Find(2*n - 1)
	expect.True(t, !ok, "one more is checked")
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
		expect.Equal(t, Demangle(c.in), c.want, c.in)
	}
	long := "_Z" + strings.Repeat("N1a", 10000)
	expect.Equal(t, Demangle(long), long, "a name too long was touched")
}

func TestRanges(t *testing.T) {
	var r Ranges
	for _, n := range []Range{
		{Start: 0x100, End: 0x200, Until: Always, Listed: true, Value: 1}, // from a list
		{Start: 0x100, End: 0x180, From: 50, Until: Always, Value: 2},     // loaded at 50
		{Start: 0x300, End: 0x400, From: 10, Until: 20, Value: 3},         // unloaded at 20
		{Start: 0x300, End: 0x340, From: 20, Until: Always, Value: 4},     // its memory reused
		{Start: 0x500, End: 0x600, Until: Always, Listed: true, Value: 5}, // the same range twice
		{Start: 0x500, End: 0x600, Until: Always, Listed: true, Value: 5},
	} {
		r.Add(n)
	}
	for _, n := range []Range{{Start: 5, End: 5, Until: 1}, {Start: 9, End: 3, Until: 1},
		{Start: 1, End: 2, From: 3, Until: 3}} {
		expect.True(t, !r.Add(n), "%+v was taken", n)
	}
	for _, c := range []struct {
		addr, time uint64
		want       int32
	}{
		{0x100, 0, 1}, {0x100, 50, 2}, {0x17f, 99, 2}, {0x180, 99, 1}, {0xff, 5, 0}, {0x200, 5, 0},
		{0x300, 9, 0}, {0x300, 10, 3}, {0x3ff, 19, 3}, {0x300, 20, 4}, {0x3ff, 20, 0}, {0x550, 1, 5},
	} {
		got, _ := r.Find(c.addr, c.time)
		expect.True(t, got == c.want, "%#x at %d: %d, want %d", c.addr, c.time, got, c.want)
	}
	r.Close(0x100, 80)
	r.sort()
	expect.Equal(t, len(r.all), 5, "ranges")
	got, _ := r.Find(0x100, 90)
	expect.True(t, got == 1, "after its end: %d", got)
}

// TestRangesLike compares with a linear search.
func TestRangesLike(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var r Ranges
		var all []Range
		for i := range g.IntN(30) {
			start, from := g.Uint64N(60), g.Uint64N(20)
			n := Range{Start: start, End: start + g.Uint64N(20), From: from, Until: from + g.Uint64N(10),
				Listed: g.IntN(2) == 0, Value: int32(i + 1)}
			if r.Add(n) {
				all = append(all, n)
			}
		}
		for addr := range uint64(90) {
			time := g.Uint64N(30)
			want := map[int32]bool{}
			var best *Range
			for i := range all {
				if n := &all[i]; n.Start <= addr && addr < n.End && n.From <= time && time < n.Until &&
					(best == nil || n.better(best)) {
					best = n
				}
			}
			for i := range all {
				if n := &all[i]; best != nil && n.Start <= addr && addr < n.End && n.From <= time &&
					time < n.Until && !best.better(n) {
					want[n.Value] = true
				}
			}
			if got, ok := r.Find(addr, time); ok != (best != nil) || ok && !want[got] {
				t.Fatalf("%d at %d: %d, want one of %v of %+v", addr, time, got, want, all)
			}
		}
	}
}

// Real runtimes have as many names as another reader counted.
func TestRuntimeNames(t *testing.T) {
	for _, c := range []struct {
		file   string
		counts clrnames.Counts
		named  map[uint64]string
	}{
		{".cache/dotnet-9.0.5/package/dist/libcoreclr.so",
			clrnames.Counts{Classes: 39, FCalls: 281, QCalls: 331},
			map[uint64]string{0x3191f0: "ThreadNative_Sleep",
				0x320130: "WaitHandle_CorWaitOnePrioritizedNative"}},
		{"out/samples/Truth8", clrnames.Counts{Classes: 49, FCalls: 369, QCalls: 851}, nil},
		{"out/samples/TruthMusl", clrnames.Counts{Classes: 39, FCalls: 281, QCalls: 966}, nil},
		{"out/samples/Truth10", clrnames.Counts{Classes: 28, FCalls: 204, QCalls: 1077}, nil},
		{".cache/dotnet-10.0.9-arm64/package/dist/azmcp",
			clrnames.Counts{Classes: 28, FCalls: 204, QCalls: 1076}, nil},
	} {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			path := needs.File(t, c.file)
			f := must.Get(elf.Open(path))(t)
			cover := Functions(f)
			_, got := clrnames.Read(&runtimeImage{f: f, cover: cover})
			expect.True(t, got == c.counts, "%+v, want %+v", got, c.counts)
			table := ELF(f, path, nil)
			for addr, want := range c.named {
				if name, offset, ok := table.Find(addr + 1); name != want || offset != 1 || !ok {
					t.Errorf("%#x is %q+%d, want %q", addr, name, offset, want)
				}
			}
		})
	}
	f := must.Get(elf.Open("/proc/self/exe"))(t)
	names := runtimeNames(f, Functions(f))
	expect.True(t, names == nil, "%d names of a program that is no runtime", len(names))
}

// Code that saves all argument registers has the role of a first use. The hijack stub, which saves results, a
// helper, and programs without a runtime have no role.
func TestRuntimeRole(t *testing.T) {
	path := needs.File(t, ".cache/dotnet-9.0.5/package/dist/libcoreclr.so")
	r := NewResolver()
	for _, c := range []struct {
		name string
		addr uint64
		want string
	}{
		{"prestub", 0x4c3b0c, firstUse}, {"prestub, inside", 0x4c3b70, firstUse},
		{"delayed load", 0x4c2d08, firstUse},
		{"hijack", 0x4c3dd3, ""}, {"allocation", 0x359100, ""},
		{"a named one", 0x3191f0, "ThreadNative_Sleep"}, {"no code", 1, ""},
	} {
		got, ok := r.Name(path, "", c.addr)
		expect.True(t, got == c.want && ok == (c.want != ""), "%s: %q, want %q", c.name, got, c.want)
	}
	f := must.Get(elf.Open("/proc/self/exe"))(t)
	expect.True(t, runtimeRole(f, records(f)) == nil, "this program is no runtime")
}

// TestLabelInside: a label inside a function with a size is no function, as gdb sees it (gdb/minsyms.c). The
// runtime's RhpAssignRef has such labels.
func TestLabelInside(t *testing.T) {
	cover := func(addr uint64) (start, end uint64, ok bool) { return 0x1000, 0x1080, true }
	table := NewTable([]Symbol{{Addr: 0x1000, Name: "alias"},
		{Addr: 0x1000, Size: 0x40, Name: "assign", Rank: RankGlobal},
		{Addr: 0x1008, Name: "location", Rank: RankGlobal}, {Addr: 0x1040, Name: "bare"},
		{Addr: 0x1060, Name: "other"}}, cover)
	for at, want := range map[uint64]string{0x1000: "assign", 0x1008: "assign", 0x103f: "assign",
		0x1040: "bare", 0x105f: "bare", 0x1060: "other", 0x107f: "other", 0x1080: ""} {
		name, _, _ := table.Find(at)
		expect.Equal(t, name, want, "%#x", at)
	}
}

package contract

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

var plain = []body{
	{rel: 0x40, size: 0x60, funclets: []uint64{0x30, 0x50}},
	{rel: 0xa8, size: 0x10},
	{rel: 0x100, size: 0x1234},
	{rel: 0x1340, size: 0x40, stub: 7},
	{rel: 0x1400, size: 0x20},
}

func TestFind(t *testing.T) {
	const begin = mapBase
	cases := []struct {
		name   string
		rel    uint64
		reason Reason
		want   Method
	}{
		{"first byte", 0x40, Found, Method{Begin: begin + 0x40, End: begin + 0x70, MethodDesc: 0x5000}},
		{"last byte before a funclet", 0x6f, Found,
			Method{Begin: begin + 0x40, End: begin + 0x70, MethodDesc: 0x5000}},
		{"first funclet", 0x70, Found,
			Method{Begin: begin + 0x70, End: begin + 0x90, MethodDesc: 0x5000, Funclet: 1}},
		{"last funclet", 0x9f, Found,
			Method{Begin: begin + 0x90, End: begin + 0xa0, MethodDesc: 0x5000, Funclet: 2}},
		{"between methods", 0xa0, NoMethod, Method{}},
		{"start in the middle of a bucket", 0xa9, Found,
			Method{Begin: begin + 0xa8, End: begin + 0xb8, MethodDesc: 0x5008}},
		{"word after the start's", 0x205, Found,
			Method{Begin: begin + 0x100, End: begin + 0x1334, MethodDesc: 0x5010}},
		{"far from the start", 0x1333, Found,
			Method{Begin: begin + 0x100, End: begin + 0x1334, MethodDesc: 0x5010}},
		{"stub", 0x1350, Found, Method{Begin: begin + 0x1340, End: codeEnd,
			Kind: Stub, Stub: StubVSDResolve}},
		{"before every method", 0x3f, NoMethod, Method{}},
		{"outside the section", codeEnd - begin, NotCode, Method{}},
	}
	for _, arch := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
		for _, linear := range []bool{false, true} {
			for _, c := range cases {
				tables := worldOf(arch, plain, linear).tables(linear)
				for pass := range 2 { // the cache answers the second
					var m Method
					r := tables.Find(mapBase+c.rel, &m)
					if r == Found {
						c.want.Base, c.want.UnwindRVA = codeBase, m.UnwindRVA
					}
					if r != c.reason || r == Found && m != c.want {
						t.Errorf("%v, linear %v, %s, pass %d: %v %+v, want %v %+v", arch, linear,
							c.name, pass, r, m, c.reason, c.want)
					}
				}
			}
		}
	}
}

// Random layouts are written and read back.
func TestRandomHeaps(t *testing.T) {
	for run := range uint64(40) {
		r := rand.New(rand.NewPCG(run, 1))
		var bodies []body
		for at := uint64(16 + 4*r.IntN(40)); at < 0xc000 && len(bodies) < 200; {
			size := uint64(1 + r.IntN(100)<<r.IntN(6))
			bodies = append(bodies, body{rel: at, size: size})
			at = (at+size+31)&^31 + 32 + 4*uint64(r.IntN(8)) // a bucket holds one start
		}
		for _, linear := range []bool{false, true} {
			tables := world(bodies, linear).tables(linear)
			for i, b := range bodies {
				for _, off := range []uint64{0, b.size / 2, b.size - 1} {
					var m Method
					r := tables.Find(mapBase+b.rel+off, &m)
					must.True(t, r == Found && m.Begin == mapBase+b.rel && m.MethodDesc == 0x5000+8*uint64(i),
						"run %d, linear %v, body %d %+v + %#x: %v %+v", run, linear, i, b, off, r, m)
				}
			}
		}
	}
}

func TestHostileMemory(t *testing.T) {
	const ip = mapBase + 0x45
	for _, c := range []struct {
		name  string
		spoil func(f *fake)
		want  Reason
	}{
		{"nothing spoilt", func(f *fake) {}, Found},
		{"collectible tags", func(f *fake) { f.slot(4, ip, atFragment|1) }, Found},
		{"level missing", func(f *fake) { f.slot(2, ip, 0) }, NotCode},
		{"level unmapped", func(f *fake) { f.slot(2, ip, 0x123456789000) }, Unreadable},
		{"level at the end of memory", func(f *fake) { f.slot(2, ip, ^uint64(7)) }, Unreadable},
		{"fragment points to itself", func(f *fake) { f.u64(atFragment, atFragment, 0, 0, 0) }, Malformed},
		{"fragments in a circle", func(f *fake) {
			f.u64(atFragment, atFragment+0x100, 0, 0, 0)
			f.u64(atFragment+0x100, atFragment|1, 0, 0, 0)
		}, Malformed},
		{"fragment of another section", func(f *fake) { f.u64(atFragment+8, 0x1000, 0x2000) }, NotCode},
		{"fragment without a section", func(f *fake) { f.u64(atFragment+24, 0) }, Unreadable},
		{"section ends before it begins", func(f *fake) { f.u64(atSection, codeEnd, codeBase) }, Malformed},
		{"section about to be deleted", func(f *fake) { f.u64(atSection+64, 0x1234) }, NotCode},
		{"section flags all ones", func(f *fake) { f.u32(atSection+16, ^uint32(0)) }, Malformed},
		{"interpreter", func(f *fake) { f.u32(atSection+16, 8) }, Unsupported},
		{"no heap", func(f *fake) { f.u64(atSection+40, 0) }, Unreadable},
		{"map base above the ip", func(f *fake) { f.u64(atHeap+32, ip+1) }, Malformed},
		{"map base far below", func(f *fake) { f.u64(atHeap+32, 0x1000) }, Malformed},
		{"map unmapped", func(f *fake) { f.u64(atHeap+40, 0xdead0000) }, Unreadable},
		{"map all ones", func(f *fake) { f.u32(atMap, ^uint32(0)) }, Malformed},
		{"header null", func(f *fake) { f.u64(mapBase+0x40-8, 0x10) }, Unreadable},
		{"header wraps", func(f *fake) { f.u64(mapBase+0x40-8, ^uint64(3)) }, Unreadable},
		{"no unwind infos", func(f *fake) { f.u32(atHeader+32, 0) }, Malformed},
		{"too many unwind infos", func(f *fake) { f.u32(atHeader+32, ^uint32(0)) }, Malformed},
		{"unwind infos unmapped", func(f *fake) { f.u32(atHeader+32, 1<<16) }, Unreadable},
		{"no method", func(f *fake) { f.u64(atHeader+24, 0) }, Malformed},
		{"method not aligned", func(f *fake) { f.u64(atHeader+24, 0x5001) }, Malformed},
		{"function ends before it begins", func(f *fake) { f.u32(atHeader+36, 0x140, 0x13f) }, Malformed},
		{"function of 4 GiB", func(f *fake) { f.u32(atHeader+36, 0, ^uint32(0)) }, Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := world([]body{{rel: 0x40, size: 0x60}}, false)
			c.spoil(f)
			var m Method
			r := f.tables(false).Find(ip, &m)
			expect.True(t, r == c.want, "%v, want %v (%+v)", r, c.want, m)
			expect.True(t, f.reads <= 4*maxFragments, "%d reads", f.reads)
		})
	}
}

// Whatever the memory contains, a lookup ends quickly and without a panic.
func TestMemoryOfNoise(t *testing.T) {
	for run := range uint64(300) {
		n := &noise{run: run}
		for _, linear := range []bool{false, true} {
			tables := &Tables{arch: context.ArchAMD64, v: view{r: n}, l: layout10, top: atTop,
				proof: proof{proven: allParts}, cache: map[uint64]*located{}, images: map[uint64]directory{}}
			tables.l.linear = linear
			var m Method
			tables.Find(codeBase+run*4099, &m)
		}
		expect.True(t, n.reads <= 8*maxFragments+4*maxBack/backChunk, "run %d: %d reads", run, n.reads)
	}
	for _, c := range []constant{0, 1, 0x7f, 0xff} {
		tables := &Tables{arch: context.ArchAMD64, v: view{r: c}, l: layout10, top: atTop,
			proof: proof{proven: allParts}, cache: map[uint64]*located{}, images: map[uint64]directory{}}
		var m Method
		expect.True(t, tables.Find(codeBase, &m) != Found, "memory of %#x: found %+v", byte(c), m)
	}
}

func TestCollectibleIsNotCached(t *testing.T) {
	f := world([]body{{rel: 0x40, size: 0x60}}, false)
	f.u32(atSection+16, 3)
	tables := f.tables(false)
	var m Method
	tables.Find(mapBase+0x45, &m)
	f.u64(atHeader+24, 0x7000)
	if r := tables.Find(mapBase+0x45, &m); r != Found || m.MethodDesc != 0x7000 {
		t.Errorf("%v %+v: the old method of a collectible section", r, m)
	}
}

// Methods of precompiled images are found by the image's exception directory. Code between them is a
// stub.
func TestPrecompiled(t *testing.T) {
	f := world(nil, false)
	f.u64(atSection+32, 0x1234) // R2RModule
	f.zero(codeBase, 0x80+24+240)
	f.put(codeBase, 'M', 'Z')
	f.u32(codeBase+0x3c, 0x80)
	f.put(codeBase+0x80, 'P', 'E', 0, 0, 0x1d, 0xfd)
	f.put(codeBase+0x80+20, 240)
	f.put(codeBase+0x80+24, 0x0b, 0x02)
	f.u32(codeBase+0x80+24+108, 16)
	f.u32(codeBase+0x80+24+136, 0x1000, 36)
	f.u32(codeBase+0x1000, 0x2000, 0x2040, 0x1800, 0x2040, 0x2080, 0x1800, 0x3000, 0x3010, 0x1800)
	f.put(codeBase+0x1800, 1, 0, 0, 0)
	tables := f.tables(false)
	var m Method
	r := tables.Find(codeBase+0x2050, &m)
	expect.True(t, r == Found && m.Kind == R2R && m.Begin == codeBase+0x2040 && m.End == codeBase+0x2080,
		"%v %+v", r, m)
	if r := tables.Find(codeBase+0x2fff, &m); r != Found || m.Kind != Stub || m.Stub != StubImageSection {
		t.Errorf("between functions: %v %+v", r, m)
	}
	f.put(codeBase+0x80, 'N')
	expect.Equal(t, f.tables(false).Find(codeBase+0x2050, &m), Malformed, "no PE")
}

// nib packs nibbles, the low one of a byte first.
func nib(n ...byte) []byte {
	out := make([]byte, (len(n)+1)/2)
	for i, v := range n {
		out[i/2] |= v << (4 * (i & 1))
	}
	return out
}

// Only memory that cannot be read is missing. Malformed data and invalid addresses are not.
func TestMissingAddr(t *testing.T) {
	const ip, unreadable = mapBase + 0x45, 0x123456789000
	for _, c := range []struct {
		name  string
		arch  context.Arch
		ip    uint64
		spoil func(f *fake)
		want  uint64
	}{
		{"malformed unwind data", context.ArchAMD64, ip, func(f *fake) { f.u32(atInfo, ^uint32(0)) }, 0},
		{"unwind data of ARM64", context.ArchARM64, ip, func(*fake) {}, 0},
		{"a stub", context.ArchAMD64, mapBase + 0x1350, func(*fake) {}, 0},
		{"no unwind data", context.ArchAMD64, ip, func(f *fake) { delete(f.bytes, atInfo+3) }, atInfo},
		{"no unwind data of ARM64", context.ArchARM64, ip, func(f *fake) { delete(f.bytes, atInfo) }, atInfo},
		{"no map", context.ArchAMD64, ip, func(f *fake) { f.u64(atHeap+40, unreadable) }, unreadable},
		{"null map", context.ArchAMD64, ip, func(f *fake) { f.u64(atHeap+40, 0) }, 0},
		{"null heap", context.ArchAMD64, ip, func(f *fake) { f.u64(atSection+40, 0) }, 0},
		{"map wraps", context.ArchAMD64, ip, func(f *fake) { f.u64(atHeap+40, ^uint64(3)) }, 0},
	} {
		f := worldOf(c.arch, plain, false)
		c.spoil(f)
		tables := f.tables(false)
		tables.v.word(0xbad0) // an earlier read that fails
		addr, ok := tables.MissingAddr(c.ip)
		expect.Equal(t, addr, c.want, c.name)
		expect.Equal(t, ok, c.want != 0, c.name)
	}
}

// Of memory in two pages, the second can be missing alone.
func TestMissingPage(t *testing.T) {
	f := &fake{bytes: map[uint64]byte{}}
	for at := uint64(0x1ff0); at < 0x2000; at++ {
		f.bytes[at] = 1
	}
	v := view{r: f}
	for addr, want := range map[uint64]uint64{
		0x1ffc: 0x2000, 0x1ff9: 0x2000, 0x2000: 0x2000, 0x1fe8: 0x1fe8,
	} {
		_, ok := v.bytes(addr, 8)
		expect.True(t, !ok && v.unread == want, "%#x: %#x is missing, want %#x", addr, v.unread, want)
	}
}

// The worked examples in the contract's description (DebugInfo.md; its 64 should be 120).
func TestNibbles(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want uint32
	}{
		{[]byte{0x00}, 0}, {[]byte{0x07}, 7}, {[]byte{0x09}, 8}, {[]byte{0x19}, 9}, {[]byte{0x7f}, 63},
		{[]byte{0x89, 0x00}, 64}, {[]byte{0xff, 0x07}, 511},
		{[]byte{0x89, 0x08}, 512}, {[]byte{0x89, 0x18}, 513},
	} {
		n := nibbles{b: c.b}
		got := n.number()
		expect.True(t, got == c.want && !n.bad, "%x: %d %v, want %d", c.b, got, n.bad, c.want)
	}
	n := nibbles{b: slices.Repeat([]byte{0xff}, 9)}
	n.number()
	expect.True(t, n.bad, "a number without an end is read")
}

// TestBounds: the same boundaries, as .NET 9 and as .NET 10 write them.
func TestBounds(t *testing.T) {
	want := []Bound{{0, Prolog, false}, {5, 0, false}, {5, 3, true}, {21, 9, false}, {40, Epilog, false}}
	// count; delta, IL+3, source each
	plain := nib(5, 0, 1, 1, 5, 3, 1, 0, 6, 2, 8|2, 0, 8|1, 4, 1, 8|2, 3, 0, 1)
	// count, bits of deltas less 1, bits of IL less 1; then 2 + 5 + 4 bits each
	var bits uint64
	for i, b := range [][3]uint64{{2, 0, 1}, {2, 5, 3}, {1, 0, 6}, {2, 16, 12}, {2, 19, 0}} {
		bits |= (b[0] | b[1]<<2 | b[2]<<7) << (11 * i)
	}
	packed := append(nib(5, 4, 3), byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24), byte(bits>>32),
		byte(bits>>40), byte(bits>>48))
	for _, c := range []struct {
		name   string
		b      []byte
		packed bool
	}{{"plain", plain, false}, {"packed", packed, true}} {
		t.Run(c.name, func(t *testing.T) {
			expect.Slices(t, DecodeBounds(c.b, c.packed), want)
			for n := range c.b {
				got := DecodeBounds(c.b[:n], c.packed)
				expect.True(t, got == nil, "%d bytes are enough for %v", n, got)
			}
		})
	}
	il, ok := ILAt(want, 100)
	expect.True(t, !ok, "an epilog is at %d", il)
	for _, c := range []struct{ native, want uint32 }{{0, 0}, {4, 0}, {5, 3}, {20, 3}, {21, 9}, {39, 9}} {
		got, ok := ILAt(want, c.native)
		expect.True(t, got == c.want && ok, "at %d: %d %v, want %d", c.native, got, ok, c.want)
	}
	_, ok = ILAt(nil, 7)
	expect.True(t, !ok, "no boundaries, and an offset")
}

// TestUnloaded checks the four signs of freed code. Its heap has no method there any more, an earlier lookup
// found its collectible section, its memory is gone, or a call is left there. Memory counts only near code of
// the runtime.
func TestUnloaded(t *testing.T) {
	const ip, far = mapBase + 0x45, 0x5555
	type change = func(*fake)
	collectible := func(f *fake) { f.slot(4, ip, atFragment|1) }
	unload := func(f *fake) { f.slot(4, ip, 0) }
	mapped := func(f *fake) { f.zero(ip, 1) }
	call := func(f *fake) { f.put(ip-6, 0, 0, 0xe8, 1, 2, 3, 4) }
	for _, c := range []struct {
		name   string
		ip     uint64
		before change // then a lookup finds the code at ip
		after  []change
		want   bool
	}{
		{"live", ip, nil, nil, false},
		{"a freed method of a live heap", ip, nil, []change{func(f *fake) { f.zero(atMap, 64) }}, true},
		{"a plug-in whose memory is in use again", ip, collectible, []change{unload, mapped}, true},
		{"with other code", ip, collectible,
			[]change{unload, func(f *fake) { f.slot(4, ip, atFragment) }}, false},
		{"not collectible", ip, nil, []change{unload, mapped}, false},
		{"a call that is left", ip, nil, []change{unload, call}, true},
		{"memory that is gone", ip, nil, []change{unload}, true},
		{"far from the runtime's code", far, nil, nil, false},
		{"unreadable tables", ip, nil, []change{func(f *fake) { f.slot(4, ip, 0x1234) }}, false},
	} {
		f := world([]body{{rel: 0x40, size: 0x60}}, false)
		if c.before != nil {
			c.before(f)
		}
		tables := f.tables(false)
		r := tables.Find(ip, new(Method))
		for _, change := range c.after {
			change(f)
		}
		got := tables.Unloaded(c.ip)
		expect.True(t, r == Found && got == c.want, "%s: %v, unloaded %v", c.name, r, got)
	}
}

// In code that can be freed, a return address that follows no call is not one of the method that is there
// now: the method that called has been freed.
func TestReplacedMethod(t *testing.T) {
	const ip = mapBase + 0x45
	for _, c := range []struct {
		name   string
		entry  uint64 // of the range map; 1 marks a collectible section
		before []byte // the return address
		want   unwind.Stop
	}{
		{"a call", atFragment | 1, []byte{0, 0, 0xe8, 1, 2, 3, 4}, unwind.StopNone},
		{"no call", atFragment | 1, make([]byte, 7), unwind.NoInfo},
		{"no call in code that stays", atFragment, make([]byte, 7), unwind.StopNone},
	} {
		f := world([]body{{rel: 0x40, size: 0x60}}, false)
		f.slot(4, ip, c.entry)
		f.put(ip-7, c.before...)
		tables := f.tables(false)
		stop := tables.Code(unwind.ReturnAddress(ip), new(managed.Code))
		exact := tables.Code(unwind.Instruction(ip), new(managed.Code))
		unloaded := tables.Unloaded(ip - 1)
		expect.True(t, stop == c.want && exact == unwind.StopNone && unloaded == (c.want != unwind.StopNone),
			"%s: %v, interrupted there %v, unloaded %v", c.name, stop, exact, unloaded)
	}
}

// The remembered sections are bounded.
func TestUnloadedBounded(t *testing.T) {
	var tables Tables
	for i := range uint64(3 * maxUnloads) {
		tables.noteCollectible(&section{begin: i << 16, end: (i + 1) << 16})
	}
	expect.True(t, len(tables.mayUnload) <= maxUnloads, "%d sections", len(tables.mayUnload))
}

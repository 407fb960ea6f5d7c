package contract

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

const contradiction part = 1 << 7

// Each check of the verification fails once: what is still proven.
func TestVerify(t *testing.T) {
	const first, header = mapBase + 0x40, atHeader
	one := []body{{rel: 0x40, size: 0x60}}
	ten := make([]body, 10)
	for i := range ten {
		ten[i] = body{rel: 0x40 + 0x100*uint64(i), size: 0x60}
	}
	nothing := func(*fake) {}
	precode := func(f *fake) {
		f.u64(descAt(0)+16, 0x67_0000)
		f.zero(0x67_4000, 16)
		f.u64(0x67_4000, first, descAt(0))
	}
	for _, c := range []struct {
		name   string
		bodies []body
		image  bool
		spoil  func(f *fake)
		want   part
	}{
		{"several methods and an image", plain, true, nothing, allParts},
		{"several methods", plain, false, nothing, partMap | partHeaps},
		{"one method and an image", one, true, nothing, allParts},
		{"one method", one, false, nothing, 0},
		{"no method and an image", []body{{rel: 0x40, size: 0x40, stub: 7}}, true,
			nothing, partMap | partImages},
		{"no code and an image", nil, true, nothing, 0},
		{"no code", nil, false, nothing, 0},

		{"a level cannot be read", one, true,
			func(f *fake) { f.slot(3, codeBase, 0x123456000) }, contradiction},
		{"a fragment of another range", one, true,
			func(f *fake) { f.u64(atFragment+16, codeEnd-8) }, contradiction},
		{"an empty fragment", one, true, func(f *fake) { f.u64(atFragment+16, codeBase) }, contradiction},
		{"fragments in a circle", one, true,
			func(f *fake) {
				f.zero(atFragment, 0x1000)
				f.u64(atFragment, atFragment, codeBase,
					codeEnd, atSection)
			}, contradiction},
		{"a fragment without a section", one, true,
			func(f *fake) { f.u64(atFragment+24, 0x123456000) }, contradiction},
		{"a section that is being deleted", one, true,
			func(f *fake) { f.u64(atSection+64, 1) }, contradiction},
		{"a collectible one", one, true, func(f *fake) { f.u32(atSection+16, 3); f.u64(atSection+64, 1) }, 0},
		{"an unknown flag", one, true, func(f *fake) { f.u32(atSection+16, 10) }, contradiction},
		{"no flag and a heap", one, true, func(f *fake) { f.u32(atSection+16, 0) }, contradiction},
		{"a flag and no heap", one, true, func(f *fake) { f.u64(atSection+40, 0) }, contradiction},
		{"a list without its flag", one, true, func(f *fake) { f.u64(atSection+48, atHeap) }, contradiction},
		{"another manager", one, true, func(f *fake) { f.u64(atSection+24, imageManager) }, contradiction},
		{"an image's manager is another", one, true,
			func(f *fake) { f.u64(atSection2+24, jitManager) }, contradiction},
		{"no manager", one, true,
			func(f *fake) { f.u64(atManagers, 0, imageManager); f.u64(atSection+24, 0) }, contradiction},
		{"an image with a heap", one, true,
			func(f *fake) { f.u32(atSection2+16, 2); f.u64(atSection2+40, atHeap) }, contradiction},
		{"a module of another image", one, true,
			func(f *fake) { f.u64(atModule+288, imageBase+0x1000) }, contradiction},
		{"no image where it should be", one, true, func(f *fake) { f.put(imageBase, 'X') }, contradiction},
		{"an image that cannot be read", one, true, func(f *fake) { delete(f.bytes, imageBase) }, 0},
		{"a function behind its image", one, true,
			func(f *fake) { f.u32(imageBase+0x1010, 0x3001) }, contradiction},
		{"a function's unwind data", one, true, func(f *fake) { f.put(imageBase+0x2800, 2) }, contradiction},

		{"a heap outside its section", one, true,
			func(f *fake) { f.u64(atHeap+24, codeEnd+8) }, contradiction},
		{"a heap far from its map", one, true,
			func(f *fake) { f.u64(atHeap+16, mapBase+0x1008) }, contradiction},
		{"a map that begins within a page", one, true,
			func(f *fake) { f.u64(atHeap+32, mapBase-8) }, contradiction},
		{"a heap without a map", one, true, func(f *fake) { f.u64(atHeap+40, 0) }, contradiction},
		{"a start outside the heap", one, true,
			func(f *fake) { f.u64(atHeap+16, mapBase+0x80) }, contradiction},
		{"a nibble above 8", one, true, func(f *fake) { f.u32(atMap, 0x00900000) }, contradiction},
		{"a start within another method", one, true,
			func(f *fake) { f.nibble(0x60); f.u64(mapBase+0x58, 7) }, contradiction},
		{"a header in the first page", one, true, func(f *fake) { f.u64(first-8, 100) }, contradiction},

		{"a header that cannot be read", one, true,
			func(f *fake) { f.u64(first-8, 0x123456000) }, contradiction},
		{"no functions", one, true, func(f *fake) { f.u32(header+32, 0) }, contradiction},
		{"a function that begins elsewhere", one, true,
			func(f *fake) { f.u32(header+36, 0x1048) }, contradiction},
		{"functions with a hole", plain, true, func(f *fake) { f.u32(header+36+12, 0x1074) }, contradiction},
		{"unwind data of another version", one, true, func(f *fake) { f.put(atInfo, 2) }, contradiction},
		{"a prolog longer than its function", one, true,
			func(f *fake) { f.put(atInfo, 1, 0x61) }, contradiction},
		{"no MethodDesc", one, true, func(f *fake) { f.u64(header+24, 0) }, contradiction},
		{"a MethodDesc that cannot be read", one, true,
			func(f *fake) { f.u64(header+24, 0x123456000) }, contradiction},
		{"a row that does not exist", one, true, func(f *fake) { f.put(descAt(0), 77) }, contradiction},
		{"a row of another method", plain, true, func(f *fake) { f.u64(atRows+8, descAt(1)) }, contradiction},
		{"ten methods and one such row", ten, true, func(f *fake) { f.u64(atRows+8, descAt(1)) }, allParts},
		{"a row that is empty", one, true, func(f *fake) { f.u64(atRows+8, 0) }, 0},
		{"a dynamic method", one, true, func(f *fake) { f.put(descAt(0)+6, 7) }, 0},
		{"boundaries behind the code", one, true,
			func(f *fake) { f.put(atDebugInfo, 0, 0x05, 0x02, 0x03, 0xe9, 0x30, 0x00) }, 0},
		{"no debug information", one, true, func(f *fake) { f.u64(header, 0) }, 0},
		{"a MethodDesc that leads elsewhere", one, true, func(f *fake) { f.u64(descAt(0)+16, first+8) }, 0},
		{"one that leads to a precode", one, true, precode, allParts},
		{"to a precode of another method", one, true,
			func(f *fake) { precode(f); f.u64(0x67_4008, descAt(1)) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := provable(c.bodies, c.image)
			c.spoil(f)
			tables := f.supposed(t)
			tables.Verify()
			e := tables.Evidence()
			got := tables.proven
			if e.contradicts() {
				got |= contradiction
			}
			expect.True(t, got == c.want && !e.Spent && e.String() != "",
				"proven %b, want %b: %+v %s", got, c.want, e, e)
		})
	}
}

// A single contradiction may be a race with the process. Only several in a row refute the layout.
func TestRefute(t *testing.T) {
	bad, good := Evidence{Map: 1}, Evidence{Images: 1}
	for _, c := range []struct {
		name  string
		seen  func(p *proof)
		wants bool
	}{
		{"few", func(p *proof) { repeat(p, bad, maxContradictions-1) }, false},
		{"many", func(p *proof) { repeat(p, bad, maxContradictions) }, true},
		{"interrupted", func(p *proof) { repeat(p, bad, 9); p.decide(good); repeat(p, bad, 9) }, false},
		{"after the proof", func(p *proof) { p.proven = partMap; repeat(p, bad, 99) }, false},
	} {
		var p proof
		if c.seen(&p); p.Refuted() != c.wants || p.Undecided() == c.wants && p.proven == 0 {
			t.Errorf("%s: refuted %v, undecided %v", c.name, p.Refuted(), p.Undecided())
		}
	}
}

// If a process ends while its tables are verified, that does not refute their layout.
func TestVerifyEnded(t *testing.T) {
	f := provable(nil, false)
	tables := f.supposed(t)
	tables.Verify()
	before := tables.Evidence()
	tables.v.r = unreadable{}
	for range 2 * maxContradictions {
		tables.Verify()
	}
	expect.True(t, tables.Evidence() == before && tables.Undecided(), "%v, then %v, undecided %v",
		before, tables.Evidence(), tables.Undecided())
}

// unreadable is the memory of a process that has ended.
type unreadable struct{}

func (unreadable) ReadAt([]byte, uint64) bool { return false }

func repeat(p *proof, e Evidence, n int) {
	for range n {
		p.decide(e)
	}
}

// Verified parts are answered; the others are verified when they are requested.
func TestPartlyProven(t *testing.T) {
	bodies := []body{{rel: 0x1340, size: 0x40, stub: 7}}
	f := provable(bodies, true)
	tables := f.supposed(t)
	const compiled, precompiled = mapBase + 0x45, imageBase + 0x2004
	expect := func(when string, inHeap, inImage Reason, undecided bool) {
		t.Helper()
		var m Method
		a, b := tables.Find(compiled, &m), tables.Find(precompiled, &m)
		expect.True(t, a == inHeap && b == inImage && tables.Undecided() == undecided,
			"%s: in the heap %v, in the image %v, undecided %v", when, a, b, tables.Undecided())
	}
	expect("at first", Unproven, Unproven, true)
	tables.Verify()
	expect("without a method", Unproven, Found, true)
	method := body{rel: 0x40, size: 0x60}
	f.body(1, &method, true)
	f.describe(1, &method)
	tables.Verify()
	expect("with a method", Found, Found, false)
}

// An image that is loaded after the heaps are verified is verified when it is looked up.
func TestLateImage(t *testing.T) {
	f := provable(plain, false)
	tables := f.supposed(t)
	if tables.Verify(); !tables.Proven() || tables.Undecided() {
		t.Fatalf("proven %v, undecided %v", tables.Proven(), tables.Undecided())
	}
	f.image()
	var m Method
	r := tables.Find(imageBase+0x2004, &m)
	expect.True(t, r == Unproven && tables.Undecided(), "%v, undecided %v", r, tables.Undecided())
	tables.Verify()
	if r := tables.Find(imageBase+0x2004, &m); r != Found || m.Kind != R2R || tables.Undecided() {
		t.Errorf("%v %+v, undecided %v", r, m, tables.Undecided())
	}
}

// One walk reads a bounded number of pages, whatever the memory contains, and does not treat a failed read as
// a contradiction.
func TestVerifyIsBounded(t *testing.T) {
	for run := range uint64(20) {
		n := &noise{run: run}
		tables := newFake().supposed(t)
		tables.v.r = n
		e := tables.collect()
		if n.reads > maxPages || e.parts() != 0 && !e.contradicts() {
			t.Errorf("run %d: %d reads, %+v", run, n.reads, e)
		}
	}
	forest := &addresses{}
	tables := newFake().supposed(t)
	tables.v.r = forest
	if e := tables.collect(); forest.reads > maxPages || e.parts() != 0 || !e.Spent || e.contradicts() {
		t.Errorf("%d reads, %+v", forest.reads, e)
	}
	circles := newFake() // each level of the map refers to itself
	circles.zero(atTop, 256*8)
	for i := range uint64(256) {
		circles.u64(atTop+8*i, atTop)
	}
	tables = circles.supposed(t)
	e := tables.collect()
	expect.True(t, circles.reads <= maxPages && e.parts() == 0, "%d reads, %+v", circles.reads, e)
}

// addresses is memory in which every word is an address that occurs nowhere else.
type addresses struct{ reads int }

func (a *addresses) ReadAt(p []byte, addr uint64) bool {
	a.reads++
	for i := 0; i+8 <= len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], (addr+uint64(i))*0x9e3779b97f4a7c15>>17&^0xfff)
	}
	return true
}

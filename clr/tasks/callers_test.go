package tasks

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// written makes entries as the probe does.
func written(texts []string, words ...uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for _, text := range texts {
		chars := utf16.Encode([]rune(text))
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, EntryText),
			uint64(2*len(chars)))
		for _, c := range chars {
			b = binary.LittleEndian.AppendUint16(b, c)
		}
		for len(b)%entrySize != 0 {
			b = append(b, 0)
		}
	}
	return b
}

// twoBoxes are Callers that know three types: two boxes, and an action.
func twoBoxes() *Callers {
	c := &Callers{roles: map[uint64]*role{}}
	c.roles[0x1000] = &role{Caller: Caller{0x1000, "App.Inner", "App", true}, kind: box,
		rule: words(16, 24) | RuleStart, valid: true}
	c.roles[0x2000] = &role{Caller: Caller{0x2000, "App.Outer", "App", true}, kind: box,
		rule: words(16, 24) | RuleStart, valid: true}
	c.roles[0x3000] = &role{kind: action, rule: words(8, 16), valid: true}
	c.roles[0x4000] = &role{} // no type
	return c
}

// A chain is what the probe has read, and it is cut where its end is not known.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []uint64
		callers string
		cut, ok bool
	}{
		{"not awaited", []uint64{0x80 | EntryStart, 0x1000}, "", false, true},
		{"awaited through an action",
			[]uint64{0x80 | EntryStart, 0x1000, 0x90 | EntryNext, 0x3000, 0xa0 | EntryNext, 0x2000},
			"App.Outer ", false, true},
		{"an action without target",
			[]uint64{0x80 | EntryStart, 0x1000, 0x90 | EntryNext, 0x3000}, "", true, true},
		{"a type without a rule",
			[]uint64{0x80 | EntryStart, 0x1000, 0x90 | EntryCut, 0x2000}, "App.Outer ", true, true},
		{"no object any more", []uint64{0x80 | EntryStart, 0x1000, 0x90 | EntryCut, 0x4000}, "", true, true},
		{"of another object", []uint64{0x88 | EntryStart, 0x1000}, "", false, false},
		{"a next one without a first", []uint64{0x80 | EntryNext, 0x1000}, "", false, false},
		{"half an entry", []uint64{0x80 | EntryStart}, "", false, false},
	} {
		k := twoBoxes()
		k.Read(written(nil, c.entries...))
		_, callers, cut, ok := k.Chain(0x80, nil)
		got := ""
		for _, caller := range callers {
			got += caller.Name + " "
		}
		expect.True(t, got == c.callers && cut == c.cut && ok == c.ok,
			"%s: %q, cut %v, ok %v", c.name, got, cut, ok)
	}
}

// An object that awaits another one does not run.
func TestWaits(t *testing.T) {
	c := twoBoxes()
	c.Read(written(nil, 0x80|EntryStart, 0x1000, 0xc0|EntryStart, 0x2001, 0x90|EntryNext,
		0x3000, 0xa0|EntryNext, 0x2000))
	for object, want := range map[uint64]bool{0x80: false, 0x90: true, 0xa0: true, 0xc0: false, 0xe0: false} {
		expect.True(t, c.Waits(object) == want, "%#x: %v", object, !want)
	}
	c.Read(nil)
	expect.True(t, !c.Waits(0xa0), "a chain of an earlier reading")
}

// Ids are 32 and 16 hexadecimal digits, or there are none.
func TestIDs(t *testing.T) {
	const trace, span = "000102030405060708090a0b0c0d0e0f", "f0e0d0c0b0a09080"
	want := IDs{[16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		[8]byte{0xf0, 0xe0, 0xd0, 0xc0, 0xb0, 0xa0, 0x90, 0x80}}
	for _, c := range []struct {
		name  string
		texts []string
		want  IDs
	}{
		{"both", []string{trace, span}, want},
		{"none", nil, IDs{}},
		{"a trace that is too short", []string{trace[1:], span}, IDs{Span: want.Span}},
		{"no digits", []string{trace, "f0e0d0c0b0a0908x"}, IDs{Trace: want.Trace}},
		{"not ASCII", []string{trace, "ı0e0d0c0b0a09080"}, IDs{Trace: want.Trace}},
	} {
		k := twoBoxes()
		k.Read(written(c.texts))
		expect.True(t, k.IDs() == c.want, "%s: %x", c.name, k.IDs())
	}
	cut := written([]string{trace})
	for n := range cut {
		twoBoxes().Read(cut[:n]) // does not panic
	}
}

package clrnames

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// fake is an image that is built word by word.
type fake struct {
	pointers  map[uint64]uint64
	words     map[uint64]uint64
	texts     map[uint64]string
	functions map[uint64]bool
	next      uint64 // address of the next text
	at        uint64 // and of the next word
}

func newFake() *fake {
	return &fake{map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]string{},
		map[uint64]bool{}, 0x100000, 0x1000}
}

func (f *fake) Pointers(yield func(addr, value uint64) bool) {
	for a, v := range f.pointers {
		if !yield(a, v) {
			return
		}
	}
}
func (f *fake) Word(a uint64) (uint64, bool)   { v, ok := f.words[a]; return v, ok }
func (f *fake) String(a uint64) (string, bool) { s, ok := f.texts[a]; return s, ok }
func (f *fake) IsFunction(a uint64) bool       { return f.functions[a] }

func (f *fake) pointer(v uint64) { f.pointers[f.at] = v; f.at += 8 }
func (f *fake) word(v uint64)    { f.words[f.at] = v; f.at += 8 }
func (f *fake) code(v uint64)    { f.functions[v] = true; f.pointer(v) }
func (f *fake) text(s string) {
	f.texts[f.next] = s
	f.pointer(f.next)
	f.next += 0x100
}

// fcall appends a row of an FCall array.
func (f *fake) fcall(name string, code uint64, signature bool) {
	flags := uint64(0xffffffffff000000)
	if signature {
		flags |= hasSignature
	}
	f.word(flags)
	f.code(code)
	f.text(name)
	if signature {
		f.pointer(0x7777)
	}
}

func (f *fake) class(class, space string, array uint64) {
	f.text(class)
	f.text(space)
	f.pointer(array)
}

func read(f *fake) (out []string, c Counts) {
	names, c := Read(f)
	for _, n := range names {
		out = append(out, fmt.Sprintf("%x %s", n.Addr, n.Name))
	}
	return out, c
}

func TestFCalls(t *testing.T) {
	f := newFake()
	array := f.at
	f.fcall("Sleep", 0x10, false)
	f.fcall("Join", 0x20, true) // a longer row
	f.fcall("Start", 0x30, false)
	f.word(0xffffffffff000001)
	f.at += 0x1000
	f.class("Thread", "System.Threading", array)
	f.class("NoArray", "System", 0x999)
	endless := f.at
	f.fcall("Lost", 0x40, false) // no end: what follows is no row
	f.at += 0x1000
	f.class("Endless", "System", endless)
	got, c := read(f)
	want := []string{"10 System.Threading.Thread.Sleep", "20 System.Threading.Thread.Join",
		"30 System.Threading.Thread.Start"}
	expect.True(t, slices.Equal(got, want) && c == (Counts{1, 3, 0}), "%q %+v", got, c)
}

func TestQCalls(t *testing.T) {
	f := newFake()
	f.code(0x5) // the word before a table: read with the next name, all names would be shifted
	for i := range minRun {
		f.text(fmt.Sprintf("Native%d", i))
		f.code(uint64(0x100 + i))
	}
	f.at += 0x100
	for i := range minRun - 1 { // too few
		f.text(fmt.Sprintf("Few%d", i))
		f.code(uint64(0x200 + i))
	}
	f.at += 0x100
	for i := range 2 * minRun { // of another stride
		f.text(fmt.Sprintf("CallConv%d", i))
		f.code(0x300)
		f.word(0)
		f.word(0)
	}
	f.at += 0x100
	for i := range minRun { // texts that are no names
		f.text(fmt.Sprintf("%%d of %d", i))
		f.code(uint64(0x400 + i))
	}
	got, c := read(f)
	expect.True(t, len(got) == minRun && got[0] == "100 Native0" &&
		got[minRun-1] == fmt.Sprintf("%x Native%d", 0x100+minRun-1, minRun-1) && c == (Counts{0, 0, minRun}),
		"%q %+v", got, c)
}

// A pair counts only if its code begins a function.
func TestNoFunction(t *testing.T) {
	f := newFake()
	for i := range minRun {
		f.text(fmt.Sprintf("Native%d", i))
		f.pointer(uint64(0x100 + i))
	}
	got, _ := read(f)
	expect.True(t, len(got) == 0, "%q", got)
}

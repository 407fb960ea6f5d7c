package tasks

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// heap is the memory of a process, from address 0 on.
type heap []byte

func (h heap) ReadAt(p []byte, addr uint64) bool { return h.ReadSome(p, addr) == len(p) }

func (h heap) ReadSome(p []byte, addr uint64) int {
	return copy(p, h[min(addr, uint64(len(h))):])
}

// put writes words from an address on.
func (h heap) put(at uint64, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(h[at+8*uint64(i):], w)
	}
}

// putString writes a String.
func (h heap) putString(at uint64, text string) {
	h.put(at, 0x4000, uint64(len(text)))
	for i := range text {
		binary.LittleEndian.PutUint16(h[at+12+2*uint64(i):], uint16(text[i]))
	}
}

// The Activity of a thread counts only if the thread has not run on after it was read.
func TestActivityOfThread(t *testing.T) {
	const thread, activity, trace, span, next = 0x100, 0x140, 0x180, 0x200, 0x280
	const first, other = "00000000000000a1", "00000000000000b2"
	id := func(last byte) IDs { return IDs{Span: [8]byte{7: last}} }
	for _, c := range []struct {
		name  string
		span  string
		still func(c *Callers, h heap) bool
		want  IDs
	}{
		{"it rests", first, func(*Callers, heap) bool { return true }, id(0xa1)},
		{"it has run on", first, func(*Callers, heap) bool { return false }, IDs{}},
		{"it runs on later", first,
			func(_ *Callers, h heap) bool { h.putString(span, other); return true }, id(0xa1)},
		{"its frames are read again", first,
			func(c *Callers, _ heap) bool { c.Follow(next, true); return true }, id(0xa1)},
		{"it has no Activity", "",
			func(*Callers, heap) bool { t.Error("the thread is checked"); return true }, IDs{}},
	} {
		h := make(heap, 0x400)
		k := twoBoxes()
		k.mem = h
		k.roles[0x5000] = &role{rule: words(8, 16), valid: true}            // Thread
		k.roles[0x6000] = &role{rule: words(8, 16) | RuleText, valid: true} // Activity
		h.put(thread, 0x5000, activity)
		h.put(activity, 0x6000, trace, span)
		h.put(next, 0x3000)
		h.putString(span, c.span)
		got := k.Thread(thread, func() bool { return c.still(k, h) })
		expect.Equal(t, got, c.want, c.name)
	}
}

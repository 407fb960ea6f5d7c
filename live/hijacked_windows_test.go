package live

import (
	"runtime"
	"testing"
	"unsafe"
)

// here is the address to which it returns.
//
//go:noinline
func here() uint64 {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	return uint64(pcs[0])
}

// A Thread object is made of words; the return address is one of this test's
// own, whose unwind data the system knows.
func TestHijacked(t *testing.T) {
	ra := here()
	const slot = 0x7f0000001230
	for _, c := range []struct {
		name  string
		words []uint64 // from the object's eighth word on
		slot  uint64
		want  bool
	}{
		{"the address, then its slot", []uint64{ra, slot}, slot, true},
		{"another slot", []uint64{ra, slot}, slot + 8, false},
		{"the slot first", []uint64{slot, ra}, slot, false},
		{"no code", []uint64{uint64(uintptr(unsafe.Pointer(t))), slot}, slot, false},
		{"code that no call is before", []uint64{ra - 1, slot}, slot, false},
		{"an older word of the same value", []uint64{5, slot, ra, slot}, slot, true},
		{"nothing", nil, slot, false},
		{"no slot", []uint64{ra, 0}, 0, false},
	} {
		var object [maxThread / 8]uint64
		copy(object[8:], c.words)
		l := NewImages(nil)
		got, ok := l.Hijacked(uint64(uintptr(unsafe.Pointer(&object))), c.slot)
		if ok != c.want || ok && got != ra {
			t.Errorf("%s: %#x, %v", c.name, got, ok)
		}
	}
	if _, ok := NewImages(nil).Hijacked(0, slot); ok {
		t.Error("a Thread where no memory is")
	}
}

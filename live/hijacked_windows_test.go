package live

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
)

// aReturn is a return address in a library of the system's. One of this program's
// own would not do: Go's linker does not sort the entries of all its functions, and
// the system misses some.
func aReturn(t *testing.T) uint64 {
	t.Helper()
	start := uint64(windows.NewLazySystemDLL("kernelbase.dll").NewProc("CreateFileW").Addr())
	for ra := start; ra < start+0x1000; ra++ {
		if f, _ := copyFunction(ra - 1); f != nil && followsCall(ra) {
			return ra
		}
	}
	t.Fatal("no call in CreateFileW")
	return 0
}

// object is in no goroutine's stack: that may move, and its address is a number here.
var object [maxThread / 8]uint64

// A Thread object is made of words; the system knows the return address's unwind
// data.
func TestHijacked(t *testing.T) {
	ra := aReturn(t)
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
		object = [maxThread / 8]uint64{}
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

package live

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// copied describes a copy of a system library as the loader would list it.
func copied(t *testing.T, base uint64) Loaded {
	t.Helper()
	path := filepath.Join(tempdir.New(t), "copied.dll")
	from := must.Get(os.Open(filepath.Join(os.Getenv("SystemRoot"), "System32", "version.dll")))(t)
	defer from.Close()
	to := must.Get(os.Create(path))(t)
	defer to.Close()
	_, err := io.Copy(to, from)
	must.Do(t, err)
	f := must.Get(pe.Open(path))(t)
	return Loaded{Base: base, Size: f.SizeOfImage(), Stamp: f.Stamp(), Path: path}
}

// mapped reports whether there is memory at an address.
func mapped(at uintptr) bool {
	var r windows.MemoryBasicInformation
	return windows.VirtualQuery(at, &r, unsafe.Sizeof(r)) == nil && r.State == windows.MEM_COMMIT
}

// viewOf returns the address at which the file of the image at base is mapped.
func viewOf(t *testing.T, table *module.Table, base uint64) uintptr {
	t.Helper()
	i := table.Find(base)
	must.True(t, i >= 0 && table.At(i).PE != nil, "no image was read for %#x", base)
	return uintptr(unsafe.Pointer(unsafe.SliceData(table.At(i).PE.Tail(0, 1))))
}

// letGo runs the garbage collector until nothing is mapped there.
func letGo(t *testing.T, view uintptr) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); mapped(view); time.Sleep(10 * time.Millisecond) {
		must.True(t, !time.Now().After(end), "the file of an image that was unloaded stays mapped")
		runtime.GC()
	}
}

// The file of an unloaded image is released, because the program may replace it, but only after the last
// table with it is gone.
func TestUnloaded(t *testing.T) {
	stays, goes := copied(t, 0x10000000), copied(t, 0x20000000)
	loaded := []Loaded{stays, goes}
	l := NewImages(func() []Loaded { return loaded })
	first := l.Table()
	other, view := viewOf(t, first, stays.Base), viewOf(t, first, goes.Base)
	id := first.At(first.Find(stays.Base)).ID

	loaded = loaded[:1]
	second := l.Table()
	i := second.Find(stays.Base)
	expect.True(t, second.Len() == 1 && second.At(i).ID == id && viewOf(t, second, stays.Base) == other,
		"what stays loaded must stay the same module")
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	expect.True(t, mapped(view), "unmapped while a table has it")
	runtime.KeepAlive(first)
	letGo(t, view)
	err := os.Remove(goes.Path)
	expect.Equal(t, err, nil)

	loaded = []Loaded{goes} // its file is gone
	third := l.Table()
	expect.True(t, third.Len() == 1 && third.At(0).ID > id, "an image that is loaded again must be another module")
	letGo(t, other)
}

// The system has the unwind data of its own libraries.
func TestFunctionEntry(t *testing.T) {
	pc := uint64(windows.NewLazySystemDLL("kernelbase.dll").NewProc("CreateFileW").Addr())
	var entry [12]byte
	base, ok := Windows{}.FunctionEntry(pc, entry[:])
	begin, end := binary.LittleEndian.Uint32(entry[:]), binary.LittleEndian.Uint32(entry[4:])
	if rva := pc - base; !ok || rva < uint64(begin) || rva >= uint64(end) {
		t.Errorf("%#x: [%#x,%#x) of %#x, %v", pc, begin, end, base, ok)
	}
	_, ok = (Windows{}).FunctionEntry(uint64(uintptr(unsafe.Pointer(&entry))), entry[:])
	expect.True(t, !ok, "a variable has unwind data")
}

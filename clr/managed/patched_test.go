package managed

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// oneCall is a runtime with one method, which contains a call at the address call.
type oneCall struct {
	call uint64
	kind Kind
	none bool // the runtime has no code there: the call is native
}

func (o *oneCall) Code(at unwind.Address, c *Code) unwind.Stop {
	if lookup := at.Lookup(); lookup < o.call || lookup >= o.call+5 || o.none {
		return unwind.NoInfo
	}
	*c = Code{Kind: o.kind}
	return unwind.StopNone
}

func (o *oneCall) ReadAt(b []byte, addr uint64) bool {
	code := []byte{0xe8, 1, 2, 3, 4}
	for i := range b {
		b[i] = 0x90
		if at := addr + uint64(i) - o.call; at < uint64(len(code)) {
			b[i] = code[at]
		}
	}
	return true
}

func (o *oneCall) Arch() context.Arch { return context.ArchAMD64 }
func (o *oneCall) Unix() bool         { return true }

// Constructed Thread objects with the layout of .NET 9.0.5: the true return address at 152, its slot at 160.
func TestTrueReturn(t *testing.T) {
	const call, slot = 0x7f4dd25e6801, 0x7f98c4fd74a0
	thread := func(ra, slot uint64, at int) []byte {
		b := make([]byte, 168)
		binary.LittleEndian.PutUint64(b, 0x21000) // its state
		binary.LittleEndian.PutUint64(b[at:], ra)
		binary.LittleEndian.PutUint64(b[at+8:], slot)
		return b
	}
	for _, c := range []struct {
		name   string
		object []byte
		kind   Kind
		ok     bool
	}{
		{"as .NET 9 has it", thread(call+5, slot, 152), Method, true},
		{"elsewhere in the object", thread(call+5, slot, 96), Method, true},
		{"another slot: of an earlier hijack", thread(call+5, slot-8, 152), Method, false},
		{"no call before it", thread(call+4, slot, 152), Method, false},
		{"in a stub", thread(call+5, slot, 152), Stub, false},
		{"the copy ends before the slot", thread(call+5, slot, 152)[:160], Method, false},
		{"not hijacked", make([]byte, 168), Method, false},
		{"nothing was copied", nil, Method, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ra, ok := New(&oneCall{call: call, kind: c.kind}).TrueReturn(c.object, slot)
			if ok != c.ok || ok && ra != call+5 {
				t.Errorf("%#x, %v", ra, ok)
			}
		})
	}
}

// The caller of a hijacked method may be native code of the runtime. There, too, the address must follow a
// call.
func TestTrueReturnToNativeCode(t *testing.T) {
	const call, slot = 0x7f4dd25e6801, 0x7f98c4fd74a0
	for ra, want := range map[uint64]bool{call + 5: true, call + 4: false, call + 6: false, 0: false} {
		b := make([]byte, 168)
		binary.LittleEndian.PutUint64(b[152:], ra)
		binary.LittleEndian.PutUint64(b[160:], slot)
		if got, ok := New(&oneCall{call: call, none: true}).TrueReturn(b, slot); ok != want ||
			ok && got != ra {
			t.Errorf("%#x: %#x, %v", ra, got, ok)
		}
	}
}

// TestLoaderFunctions: the functions that change the loader's tables are found by name in Wine's ntdll. The
// functions that they call are not.
func TestLoaderFunctions(t *testing.T) {
	const path = "../../.cache/wine/prefix/drive_c/windows/system32/ntdll.dll"
	if _, err := os.Stat(path); err != nil {
		t.Skip("SKIPPED-CHECK: no prefix of Wine; run scripts/wine.sh prepare")
	}
	f := must.Get(pe.Open(path))(t)
	exports := must.Get(f.Exports())(t)
	got := LoaderFunctions(f)
	found := map[string]bool{}
	for i := range exports {
		e := &exports[i]
		for _, r := range got {
			if r.Holds(uint64(e.RVA)) {
				found[e.Name] = true
			}
		}
	}
	for name := range changing {
		expect.True(t, found[name], "%s is not found in %#x", name, got)
	}
	for _, name := range []string{"LdrGetDllHandle", "RtlLookupFunctionEntry", "NtDelayExecution",
		"KiUserExceptionDispatcher"} {
		expect.True(t, !found[name], "%s does not change the tables", name)
	}
	expect.True(t, len(got) >= len(changing) && len(got) < maxFound, "%d parts", len(got))
}

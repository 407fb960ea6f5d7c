package managed

import (
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
)

// Wine's ntdll has these functions by name; the functions that they call are not included.
func TestLoaderFunctions(t *testing.T) {
	const path = "../../.cache/wine/prefix/drive_c/windows/system32/ntdll.dll"
	if _, err := os.Stat(path); err != nil {
		t.Skip("SKIPPED-CHECK: no prefix of Wine; run scripts/wine.sh prepare")
	}
	f, err := pe.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	exports, err := f.Exports()
	if err != nil {
		t.Fatal(err)
	}
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
		if !found[name] {
			t.Errorf("%s is not found in %#x", name, got)
		}
	}
	for _, name := range []string{"LdrGetDllHandle", "RtlLookupFunctionEntry", "NtDelayExecution", "KiUserExceptionDispatcher"} {
		if found[name] {
			t.Errorf("%s does not change the tables", name)
		}
	}
	if len(got) < len(changing) || len(got) >= maxFound {
		t.Errorf("%d parts", len(got))
	}
}

package managed

import (
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Wine's ntdll has these functions by name; the functions that they call are not included.
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

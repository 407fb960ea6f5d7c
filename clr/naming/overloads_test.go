package naming

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Hardly any two methods of the class library have the same name.
func TestOverloadsOfCoreLib(t *testing.T) {
	at, _ := filepath.Glob("../../.cache/dotnet-9.*/package/dist/System.Private.CoreLib.dll")
	if len(at) == 0 {
		t.Skip("SKIPPED-CHECK: no System.Private.CoreLib.dll in .cache (make deps)")
	}
	b := must.Get(os.ReadFile(at[0]))(t)
	md := must.Get(metadata.Parse(b[max(bytes.Index(b, []byte("BSJB\x01\x00\x01\x00")), 0):]))(t)
	im := image{md: md}
	plain, full := map[string]int{}, map[string]int{}
	rid := 1
	for ; ; rid++ {
		m := im.named(rid)
		if m.Name == "" {
			break
		}
		plain[demangle.Name(m.Name)]++
		full[m.Readable()]++
	}
	before, _ := merged(plain)
	after, names := merged(full)
	t.Logf("%d methods; %d had the name of another without parameters and arguments, %d have with", rid-1, before, after)
	if rid < 30000 || before < 10000 {
		t.Errorf("%d methods, %d of them overloads: is this the class library?", rid-1, before)
	}
	if after*100 > rid {
		t.Errorf("%d methods have the name of another: %q", after, names[:min(len(names), 20)])
	}
}

// merged counts methods that share their names.
func merged(names map[string]int) (n int, which []string) {
	for name, k := range names {
		if k > 1 {
			n += k
			which = append(which, name)
		}
	}
	slices.Sort(which)
	return n, which
}

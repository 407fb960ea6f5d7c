package symbol

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The functions of a compiled library have names; the space between them has none.
func TestPENames(t *testing.T) {
	const cc = "x86_64-w64-mingw32-gcc"
	if _, err := exec.LookPath(cc); err != nil {
		t.Skipf("SKIPPED-CHECK: no %s", cc)
	}
	dll := filepath.Join(tempdir.New(t), "demo.dll")
	must.Run(t, exec.Command(cc, "-O2", "-shared", "-o", dll, "../profiler/testdata/demo.c"))
	n := NewResolver()
	f := must.Get(pe.Open(dll))(t)
	var at uint64
	for _, s := range f.Functions() {
		if s.Name == "demo_quicksort" {
			at = uint64(s.RVA)
		}
	}
	if at == 0 {
		t.Fatal("demo_quicksort is not among the names")
	}
	start, end, ok := n.Function(dll, "", at+1)
	if !ok || start != at || end <= at+8 {
		t.Fatalf("function %#x to %#x, %v", start, end, ok)
	}
	for _, c := range []struct {
		name string
		addr uint64
		want string
	}{
		{"first byte", at, "demo_quicksort"},
		{"last byte", end - 1, "demo_quicksort"},
		{"header", 0x10, ""},
		{"outside", 1 << 31, ""},
		{"no RVA", 1 << 40, ""},
	} {
		if got, _ := n.Name(dll, "", c.addr); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if name, ok := n.Name(filepath.Join(tempdir.New(t), "none.dll"), "", at); ok {
		t.Errorf("a file that is not there names %q", name)
	}
}

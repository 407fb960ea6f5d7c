package symbol

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol/clrnames"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Real runtimes have as many names as another reader counted.
func TestRuntimeNames(t *testing.T) {
	for _, c := range []struct {
		file   string
		counts clrnames.Counts
		named  map[uint64]string
	}{
		{".cache/dotnet-9.0.5/package/dist/libcoreclr.so", clrnames.Counts{Classes: 39, FCalls: 281, QCalls: 331},
			map[uint64]string{0x3191f0: "ThreadNative_Sleep", 0x320130: "WaitHandle_CorWaitOnePrioritizedNative"}},
		{"out/samples/Truth8", clrnames.Counts{Classes: 49, FCalls: 369, QCalls: 851}, nil},
		{"out/samples/TruthMusl", clrnames.Counts{Classes: 39, FCalls: 281, QCalls: 966}, nil},
		{"out/samples/Truth10", clrnames.Counts{Classes: 28, FCalls: 204, QCalls: 1077}, nil},
		{".cache/dotnet-10.0.9-arm64/package/dist/azmcp", clrnames.Counts{Classes: 28, FCalls: 204, QCalls: 1076}, nil},
	} {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			path := filepath.Join("..", c.file)
			if _, err := os.Stat(path); err != nil {
				t.Skip("SKIPPED-CHECK: no " + c.file)
			}
			f := must.Get(elf.Open(path))(t)
			cover := Functions(f)
			if _, got := clrnames.Read(&runtimeImage{f: f, cover: cover}); got != c.counts {
				t.Errorf("%+v, want %+v", got, c.counts)
			}
			table := ELF(f, path, nil)
			for addr, want := range c.named {
				if name, offset, ok := table.Find(addr + 1); name != want || offset != 1 || !ok {
					t.Errorf("%#x is %q+%d, want %q", addr, name, offset, want)
				}
			}
		})
	}
	f := must.Get(elf.Open("/proc/self/exe"))(t)
	if names := runtimeNames(f, Functions(f)); names != nil {
		t.Errorf("%d names of a program that is no runtime", len(names))
	}
}

// Code that saves all argument registers has the role of a first use. The hijack stub, which saves results, a
// helper, and programs without a runtime have no role.
func TestRuntimeRole(t *testing.T) {
	path := filepath.Join("..", ".cache/dotnet-9.0.5/package/dist/libcoreclr.so")
	if _, err := os.Stat(path); err != nil {
		t.Skip("SKIPPED-CHECK: no .NET 9.0.5")
	}
	r := NewResolver()
	for _, c := range []struct {
		name string
		addr uint64
		want string
	}{
		{"prestub", 0x4c3b0c, firstUse}, {"prestub, inside", 0x4c3b70, firstUse}, {"delayed load", 0x4c2d08, firstUse},
		{"hijack", 0x4c3dd3, ""}, {"allocation", 0x359100, ""}, {"a named one", 0x3191f0, "ThreadNative_Sleep"}, {"no code", 1, ""},
	} {
		if got, ok := r.Name(path, "", c.addr); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	f := must.Get(elf.Open("/proc/self/exe"))(t)
	if runtimeRole(f, Functions(f)) != nil {
		t.Error("this program is no runtime")
	}
}

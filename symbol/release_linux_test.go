package symbol

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The tables in a cache do not keep an image mapped, whose container may have ended. Its names, ranges, and
// roles stay.
func TestCacheKeepsNoImage(t *testing.T) {
	library := needs.File(t, ".cache/dotnet-9.0.5/package/dist/libcoreclr.so")
	dir, run := build(t)
	run("sh", "-c", "echo 'int f(void) { return 1; }' | gcc -shared -nostdlib -o sized.so -x c -")
	sized := filepath.Join(dir, "sized.so")
	var f elf.Symbol
	for f = range must.Get(elf.Open(sized))(t).Symbols(true) {
	}
	for _, c := range []struct {
		name, file string
		addr       uint64
		want       string
	}{
		{"a symbol", library, 0x3191f0, "ThreadNative_Sleep"},
		{"a role", library, 0x4c3b0c, firstUse},
		{"a symbol with a size", sized, f.Value, "f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lib.so")
			must.Do(t, os.WriteFile(path, must.Get(os.ReadFile(c.file))(t), 0o600))
			var cache Cache
			id := keepMapped(t, &cache, path)
			must.Unmap(t, path, 0)
			must.Do(t, os.Remove(path))
			r := NewResolver()
			r.Cache = &cache
			name, _ := r.Name(path, id, c.addr)
			start, end, ok := r.Function(path, id, c.addr)
			expect.True(t, name == c.want && ok && start <= c.addr && c.addr < end, "%q, [%#x, %#x)",
				name, start, end)
		})
	}
}

// keepMapped makes the cache's table of an image that is mapped.
func keepMapped(t *testing.T, cache *Cache, path string) (id string) {
	t.Helper()
	f := must.Get(elf.Map(path))(t)
	r := NewResolver()
	r.Cache = cache
	r.Keep(path, f.BuildID(), f)
	r.Table(path, f.BuildID())
	expect.True(t, must.Mappings(t, path) > 0, "not mapped")
	return f.BuildID()
}

package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Resolvers with one cache read an image with a build ID once, and again after a failure. A full cache drops
// its contents and reads again.
func TestCache(t *testing.T) {
	dir, _ := build(t)
	prog := filepath.Join(dir, "prog")
	hidden := truth(t, prog)["hidden"]
	const id = "abcdef0123456789"
	var cache Cache
	named := func(buildID string) bool {
		r := NewResolver()
		r.DebugDirs, r.Cache = []string{}, &cache
		name, ok := r.Name(prog, buildID, hidden.Value)
		return ok && name == "hidden"
	}
	for _, step := range []struct {
		name    string
		before  func() error
		buildID string
		want    bool
	}{
		{"the file is not there yet", func() error { return os.Rename(prog, prog+"-away") }, id, false},
		{"it has come", func() error { return os.Rename(prog+"-away", prog) }, id, true},
		{"it is gone again", func() error { return os.Rename(prog, prog+"-away") }, id, true},
		{"another build", func() error { return nil }, "abcdef01", false},
		{"no build ID", func() error { return nil }, "", false},
		{"the cache is full", func() error { cache.image("more", id).size.Store(maxCached); return nil }, id, true},
		{"and has forgotten", func() error { cache.image("one more", id); return nil }, id, false},
	} {
		if err := step.before(); err != nil {
			t.Fatal(err)
		}
		if got := named(step.buildID); got != step.want {
			t.Errorf("%s: named %v", step.name, got)
		}
	}
	for i := range 10 {
		cache.image(fmt.Sprint(i), id).size.Store(maxCached / 4)
	}
	if len(cache.images) > 6 {
		t.Errorf("%d images are kept", len(cache.images))
	}
}

package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Symbols are found in folders of each layout, by the build ID only.
func TestFolders(t *testing.T) {
	dir, run := build(t)
	hidden := truth(t, filepath.Join(dir, "prog"))["hidden"]
	run("objcopy", "--only-keep-debug", "prog", "full.debug")
	run("strip", "-o", "stripped", "prog")
	run("gcc", "-g", "-Wl,--build-id=0xffff", "-o", "other", "a.c")
	run("objcopy", "--strip-all", "--remove-section", ".note.gnu.build-id", "prog", "noid")
	const id = "abcdef0123456789"
	for _, c := range []struct {
		name, image, file, from string
		found                   bool
		refused                 int
	}{
		{"nothing", "stripped", "x/y", "full.debug", false, 0},
		{".build-id", "stripped", ".build-id/ab/cdef0123456789.debug", "full.debug", true, 0},
		{"a .build-id folder", "stripped", "ab/cdef0123456789.debug", "full.debug", true, 0},
		{"symbol store", "stripped", "_.debug/elf-buildid-sym-" + id + "/_.debug", "full.debug", true, 0},
		{"debuginfod's cache", "stripped", id + "/debuginfo", "full.debug", true, 0},
		{"debuginfod's files", "stripped", "buildid/" + id + "/debuginfo", "full.debug", true, 0},
		{"flat, .NET", "stripped", "stripped.dbg", "full.debug", true, 0},
		{"flat", "stripped", "stripped.debug", "full.debug", true, 0},
		{"flat, the image with its symbols", "stripped", "stripped", "prog", true, 0},
		{"an image without symbols", "stripped", "stripped", "stripped", false, 0},
		{"another build", "stripped", "stripped.dbg", "other", false, 1},
		{"another build, in .build-id", "stripped", ".build-id/ab/cdef0123456789.debug", "other", false, 1},
		{"no ELF file", "stripped", "stripped.dbg", "a.c", false, 0},
		{"an image without a build ID", "noid", "noid.dbg", "full.debug", false, 0},
		{"an image that is not there", "gone", ".build-id/ab/cdef0123456789.debug", "full.debug", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			b := must.Get(os.ReadFile(filepath.Join(dir, c.from)))(t)
			at := filepath.Join(folder, c.file)
			os.MkdirAll(filepath.Dir(at), 0o755)
			must.Do(t, os.WriteFile(at, b, 0o644))
			r := NewResolver()
			r.DebugDirs, r.Folders = []string{}, Folders{"/does/not/exist", folder}
			buildID := id
			if c.image == "noid" {
				buildID = ""
			}
			name, ok := r.Name(filepath.Join(dir, c.image), buildID, hidden.Value)
			if ok != c.found || ok && name != "hidden" {
				t.Errorf("%q, %v", name, ok)
			}
			refused := r.Refused()
			must.Equal(t, len(refused), c.refused, "refused %v", refused)
			for _, n := range refused {
				expect.True(t, n.File == at && n.Want == id && n.Got == "ffff", "%+v", n)
			}
		})
	}
}

// A build ID never names a file outside the folder.
func TestHostileBuildIDs(t *testing.T) {
	for _, id := range []string{"", "a", "abc", "../../etc", "ab/../../x", "ABCD", strings.Repeat("x", 100)} {
		expect.True(t, !isBuildID(id), "%q", id)
		expect.True(t, (Folders{"/"}).find("/x/y", id, "", func(Refusal) {}) == nil, "%q: found", id)
	}
}

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
		{"the file appears", func() error { return os.Rename(prog+"-away", prog) }, id, true},
		{"the file is gone again", func() error { return os.Rename(prog, prog+"-away") }, id, true},
		{"another build", func() error { return nil }, "abcdef01", false},
		{"no build ID", func() error { return nil }, "", false},
		{"the cache is full", func() error {
			cache.image("more", id).size.Store(maxCached)
			return nil
		}, id, true},
		{"the image was dropped", func() error { cache.image("one more", id); return nil }, id, false},
	} {
		must.Do(t, step.before())
		expect.Equal(t, named(step.buildID), step.want, "%s: named", step.name)
	}
	for i := range 10 {
		cache.image(fmt.Sprint(i), id).size.Store(maxCached / 4)
	}
	expect.True(t, len(cache.images) <= 6, "%d images are kept", len(cache.images))
}

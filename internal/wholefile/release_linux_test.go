package wholefile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A mapping ends with its last user. A slice that outlives it reads zeros. The ranges of zeros are bounded.
func TestRelease(t *testing.T) {
	const files = 2*maxReleased + 10
	dir := tempdir.New(t)
	path := filepath.Join(dir, "kept")
	must.Do(t, os.WriteFile(path, []byte("kept"), 0o600))
	kept := must.Get(MapShared(path, 100))(t)
	before := must.Mappings(t, "\n")
	for i := range files {
		must.Get(MapShared(path, 100))(t)
		gone(t, filepath.Join(dir, fmt.Sprint(i)))
	}
	must.Unmap(t, dir, 1)
	late := gone(t, filepath.Join(dir, "late"))
	must.Unmap(t, dir, 1)
	expect.Equal(t, string(late), "\x00\x00\x00\x00", "bytes of a file that is not mapped any more")
	expect.Equal(t, string(kept.Data), "kept")
	more := must.Mappings(t, "\n") - before
	expect.True(t, more <= maxReleased+100, "%d mappings more than before", more)
	shared.Lock()
	places, zeros := len(shared.of), len(shared.released)
	shared.Unlock()
	expect.True(t, places < 100 && zeros == maxReleased, "%d places, %d ranges of zeros", places, zeros)
	runtime.KeepAlive(kept)
}

// gone maps a file that is then deleted. It returns bytes that do not keep the mapping.
func gone(t *testing.T, path string) []byte {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte("gone"), 0o600))
	m := must.Get(MapShared(path, 100))(t)
	must.Do(t, os.Remove(path))
	return m.Data
}

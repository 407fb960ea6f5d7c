package listen

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The next run removes the folders of killed tools. It keeps the folders of living tools and
// all files that it does not know.
func TestSweep(t *testing.T) {
	parent := tempdir.New(t)
	folder := func(name string, files ...string) string {
		dir := filepath.Join(parent, name)
		os.Mkdir(dir, 0o700)
		for _, f := range files {
			os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600)
		}
		return dir
	}
	gone := []string{folder("seedwalk-run-1", lockName, socketName),
		folder("seedwalk-run-2", lockName, RefusedName), folder("seedwalk-run-3", lockName)}
	kept := []string{folder("seedwalk-run-4", socketName), folder("seedwalk-other", lockName, socketName),
		folder("seedwalk-run-5", lockName, "another's")}
	elsewhere := folder("elsewhere", lockName, socketName)
	if runtime.GOOS != "windows" {
		os.WriteFile(filepath.Join(folder("seedwalk-run-6"), lockName), nil, 0o600) // being made
		kept = append(kept, filepath.Join(parent, "seedwalk-run-6"))
		os.Symlink(elsewhere, filepath.Join(parent, "seedwalk-run-7"))
	}
	living, err := NewFolder(parent)
	must.Do(t, err)
	second, err := NewFolder(parent) // sweeps again
	must.Do(t, err)
	for _, dir := range gone {
		_, err := os.Lstat(dir)
		expect.True(t, err != nil, "%s is still there", dir)
	}
	for _, dir := range append(kept, elsewhere, filepath.Join(elsewhere, lockName),
		living.Dir, living.Path(lockName)) {
		_, err := os.Lstat(dir)
		expect.Equal(t, err, nil)
	}
	living.Close()
	second.Close()
	_, err = os.Lstat(living.Dir)
	expect.True(t, err != nil, "%s is still there", living.Dir)
}

package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenToAll(t *testing.T) {
	dir, err := os.MkdirTemp("", "seedwalk-open-")
	if err != nil || os.Chmod(dir, 0o755) != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for path := dir; path != "/"; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode()&1 == 0 {
			t.Skipf("SKIPPED-CHECK: %s is closed to other users", path)
		}
	}
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	below, link := filepath.Join(closed, "below"), filepath.Join(dir, "link")
	for path, mode := range map[string]fs.FileMode{open: 0o755, closed: 0o700} {
		if err := os.Mkdir(path, mode); err != nil || os.Chmod(path, mode) != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(below, 0o755); err != nil || os.Symlink(below, link) != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{open: true, closed: false, below: false, link: false, filepath.Join(dir, "absent"): false} {
		if got := openToAll(path); got != want {
			t.Errorf("openToAll(%s) = %v", filepath.Base(path), got)
		}
	}
}

func TestUserOf(t *testing.T) {
	if uid, ok := userOf(os.Getpid()); !ok || uid != os.Geteuid() {
		t.Errorf("user %d, %v", uid, ok)
	}
	if _, ok := userOf(1 << 30); ok {
		t.Error("a process that is not there has a user")
	}
}

package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED-CHECK: root may write anywhere")
	}
	dir := tempdir.New(t)
	os.Chmod(dir, 0o500)
	r := CheckWritable(filepath.Join(dir, "x"))
	expect.True(t, r != nil && strings.Contains(r.Error(), "permission denied"), "got %v", r)
}

// No file can be created in /proc (ENOENT): the advice must not be to make that directory.
func TestNoFileInProc(t *testing.T) {
	r := CheckWritable("/proc/x.html")
	expect.True(t, r != nil && !strings.Contains(r.Remedy, "mkdir") && strings.Contains(r.Remedy, "--output"),
		"%v", r)
}

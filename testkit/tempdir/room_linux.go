package tempdir

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Room skips a test that writes so many MB below New if there is not as much free.
func Room(t testing.TB, mb uint64) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &s); err != nil {
		t.Fatal(err)
	}
	if free := s.Bavail * uint64(s.Bsize) >> 20; free < mb {
		t.Skipf("SKIPPED-CHECK: %d MB are needed for a core, %s has %d free (TMPDIR chooses another folder)", mb, os.TempDir(), free)
	}
}

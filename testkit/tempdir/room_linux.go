package tempdir

import (
	"cmp"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Room skips the test if the folder of New has less than mb MiB free.
func Room(t testing.TB, mb uint64) {
	t.Helper()
	var s unix.Statfs_t
	dir := cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()) // as testing.TempDir chooses
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	if free := s.Bavail * uint64(s.Bsize) >> 20; free < mb {
		t.Skipf("SKIPPED-CHECK: %d MiB are needed, and %s has %d MiB free (TMPDIR chooses another folder)",
			mb, dir, free)
	}
}

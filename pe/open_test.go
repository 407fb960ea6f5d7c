package pe_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// TestOpenRefuses: Open refuses a folder and a file that is too large, with name and reason.
// It allocates no memory for the large file.
func TestOpenRefuses(t *testing.T) {
	dir := tempdir.New(t)
	large := filepath.Join(dir, "large.dll")
	must.Do(t, os.WriteFile(large, []byte("MZ"), 0o600))
	if err := os.Truncate(large, pe.MaxFile+1); err != nil {
		t.Skip("SKIPPED-CHECK: no sparse files here: ", err)
	}
	var before, after runtime.MemStats
	for _, c := range []struct {
		path string
		why  pe.Reason
	}{{large, pe.TooLarge}, {dir, pe.NotRegular}} {
		runtime.ReadMemStats(&before)
		f, err := pe.Open(c.path)
		runtime.ReadMemStats(&after)
		var format *pe.FormatError
		expect.True(t, f == nil && errors.As(err, &format) && format.Reason == c.why,
			"%s: %v, want %v", c.path, err, c.why)
		n := after.TotalAlloc - before.TotalAlloc
		expect.True(t, n <= 1<<20, "%s: %d bytes allocated", c.path, n)
	}
	_, err := pe.Open(filepath.Join(dir, "none"))
	expect.True(t, errors.Is(err, os.ErrNotExist), "an absent file: %v", err)
}

package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// An output that could not be written at the end is refused before the start: a read-only
// file, and a file that another program has open and does not share.
func TestOutputThatCannotBeReplaced(t *testing.T) {
	path := filepath.Join(tempdir.New(t), "a.html")
	must.Do(t, os.WriteFile(path, []byte("old"), 0o444))
	refused := func() string {
		r := CheckWritable(path)
		if r == nil {
			return ""
		}
		return r.Error()
	}
	if got := refused(); !strings.Contains(got, "cannot be replaced") || strings.Contains(got, "\n") {
		t.Errorf("read only: %q", got)
	}
	os.Chmod(path, 0o666)
	expect.Equal(t, refused(), "", "writable")
	name, _ := windows.UTF16PtrFromString(path)
	h := must.Get(windows.CreateFile(name, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0))(t)
	defer windows.CloseHandle(h)
	got := refused()
	expect.True(t, strings.Contains(got, "close the program that has it open"), "open elsewhere: %q", got)
}

package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestWhole(t *testing.T) {
	dir := tempdir.New(t)
	write := func(name, content string) string {
		p := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(p, []byte(content), 0o600))
		return p
	}
	five, none := write("five", "fives"), write("empty", "")
	for _, c := range []struct {
		name, path string
		most       int64
		read, mapd any // the content, or why not
	}{
		{"as large as allowed", five, 5, "fives", "fives"},
		{"larger", five, 4, TooLarge, TooLarge},
		{"empty", none, 5, "", Empty},
		{"a folder", dir, 1 << 40, NotRegular, NotRegular},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, c.path, c.most, Read, c.read)
			check(t, c.path, c.most, Map, c.mapd)
		})
	}
	for _, f := range []func(string, int64) ([]byte, error){Read, Map} {
		_, err := f(filepath.Join(dir, "missing"), 5)
		expect.True(t, errors.Is(err, fs.ErrNotExist), "a missing file: %v", err)
	}
}

func check(t *testing.T, path string, most int64, f func(string, int64) ([]byte, error), want any) {
	t.Helper()
	data, err := f(path, most)
	if content, ok := want.(string); ok {
		expect.True(t, err == nil && string(data) == content, "%q, %v, want %q", data, err, content)
		return
	}
	var refused *Error
	expect.True(t, errors.As(err, &refused) && refused.Reason == want && refused.Path == path &&
		refused.Error() != "", "%q, %v, want it refused: %v", data, err, want)
}

// All callers share one mapping of a file. A file that comes into its place has its own.
func TestMapShared(t *testing.T) {
	path := filepath.Join(tempdir.New(t), "f")
	write := func(text string) {
		must.Do(t, os.WriteFile(path+".new", []byte(text), 0o600))
		must.Do(t, os.Rename(path+".new", path))
	}
	read := func() *Mapping {
		return must.Get(MapShared(path, 100))(t)
	}
	write("one")
	a, b := read(), read()
	write("two")
	c := read()
	expect.Equal(t, fmt.Sprintf("%s, %s, %s", a.Data, b.Data, c.Data), "one, one, two")
	if runtime.GOOS != "windows" && a != b {
		t.Error("two mappings of one file")
	}
	_, err := MapShared(tempdir.New(t), 100)
	expect.True(t, err != nil, "a folder is mapped")
}

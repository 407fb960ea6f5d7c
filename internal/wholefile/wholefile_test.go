package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestWhole(t *testing.T) {
	dir := tempdir.New(t)
	write := func(name, content string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
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
		if _, err := f(filepath.Join(dir, "missing"), 5); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
	}
}

func check(t *testing.T, path string, most int64, f func(string, int64) ([]byte, error), want any) {
	t.Helper()
	data, err := f(path, most)
	if content, ok := want.(string); ok {
		if err != nil || string(data) != content {
			t.Errorf("%q, %v, want %q", data, err, content)
		}
		return
	}
	var refused *Error
	if !errors.As(err, &refused) || refused.Reason != want || refused.Path != path || refused.Error() == "" {
		t.Errorf("%q, %v, want it refused: %v", data, err, want)
	}
}

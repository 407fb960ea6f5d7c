package arch

import (
	"go/build"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

type position = token.Position

// overlay lets a context see the extra files.
func (t *tree) overlay(c *build.Context) {
	if len(t.extra) == 0 {
		return
	}
	c.ReadDir = func(dir string) ([]fs.FileInfo, error) {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		var out []fs.FileInfo
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				out = append(out, info)
			}
		}
		for name := range t.extra {
			if path.Dir(name) == t.slash(dir) {
				out = append(out, extraFile(path.Base(name)))
			}
		}
		return out, nil
	}
	c.OpenFile = func(name string) (io.ReadCloser, error) {
		if text, ok := t.extra[t.slash(name)]; ok {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return os.Open(name)
	}
	c.IsDir = func(string) bool { return true } // the folder of an extra file need not exist
}

func (t *tree) slash(name string) string {
	rel, err := filepath.Rel(t.root, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// extraFile is the fs.FileInfo of a file that is not there.
type extraFile string

func (f extraFile) Name() string     { return string(f) }
func (extraFile) Size() int64        { return 0 }
func (extraFile) Mode() fs.FileMode  { return 0o644 }
func (extraFile) ModTime() time.Time { return time.Time{} }
func (extraFile) IsDir() bool        { return false }
func (extraFile) Sys() any           { return nil }

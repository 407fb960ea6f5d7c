package cfi_test

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var (
	unpackOnce sync.Once
	unpackDir  string
	unpackErr  error
)

// unpack extracts the archive once per test run, into a directory that
// TestMain removes.
func unpack(t testing.TB, archive string) string {
	t.Helper()
	unpackOnce.Do(func() {
		if unpackDir, unpackErr = os.MkdirTemp("", "cfi-vectors"); unpackErr == nil {
			unpackErr = extract(archive, unpackDir)
		}
	})
	if unpackErr != nil {
		t.Fatal(unpackErr)
	}
	return unpackDir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if unpackDir != "" {
		os.RemoveAll(unpackDir)
	}
	os.Exit(code)
}

func extract(archive, dir string) error {
	fd, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer fd.Close()
	z, err := gzip.NewReader(fd)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := extractOne(r, h, dir); err != nil {
			return err
		}
	}
}

func extractOne(r io.Reader, h *tar.Header, dir string) error {
	name := filepath.Clean(h.Name)
	if h.Typeflag != tar.TypeReg || filepath.IsAbs(name) || strings.HasPrefix(name, "..") {
		return nil
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, r); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

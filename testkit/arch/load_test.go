package arch

import (
	"errors"
	"fmt"
	"go/build"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const self = "github.com/seedwalk/seedwalk"

// Package is a folder with Go files, as all platforms together see it.
type Package struct {
	Name    string // of the folder, below the module's root; "." is the root
	Command bool
	Edges   []Edge
	Cgo     string   // one of the files that import "C", or ""
	Dead    []string // files that no platform builds, with tags or without
}

// Edge is an import in a file.
type Edge struct {
	To   string // a folder of ours, or an import path of others
	Ours bool
	Test bool   // the file is a test
	File string // slash-separated, below the root
}

// platform decides which files are built.
type platform struct {
	os, arch string
	cgo      bool
}

func platforms() (all []platform) {
	for _, system := range []string{"linux", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, cgo := range []bool{false, true} {
				all = append(all, platform{system, arch, cgo})
			}
		}
	}
	return all
}

// tags of files that are built for some tests only.
var tags = []string{"oracle", "torture"}

func (p platform) context() build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled = p.os, p.arch, p.cgo
	c.Compiler = "gc"
	return c
}

// tree reads the module at root. extra are files to add, by slash-separated names below root.
type tree struct {
	root  string
	extra map[string]string
}

// folders lists every folder with Go files, except those that the go command ignores.
func (t *tree) folders() ([]string, error) {
	seen := map[string]bool{}
	err := filepath.WalkDir(t.root, func(p string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && p != t.root &&
			(name[0] == '.' || name[0] == '_' || name == "testdata" || name == "out" ||
				name == "node_modules" || isFile(filepath.Join(p, "go.mod"))):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			rel, err := filepath.Rel(t.root, filepath.Dir(p))
			seen[filepath.ToSlash(rel)] = true
			return err
		}
		return nil
	})
	return slices.Sorted(maps.Keys(seen)), err
}

func isFile(name string) bool {
	s, err := os.Stat(name)
	return err == nil && s.Mode().IsRegular()
}

// all reads every package.
func (t *tree) all() ([]Package, error) {
	names, err := t.folders()
	if err != nil {
		return nil, err
	}
	var out []Package
	for _, n := range names {
		p, err := t.pkg(n)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// pkg reads a folder for every platform, each time with all of tags and with none.
func (t *tree) pkg(name string) (Package, error) {
	p := Package{Name: name}
	edges, built, dead := map[Edge]bool{}, map[string]bool{}, map[string]bool{}
	for _, pl := range platforms() {
		for _, tags := range [][]string{nil, tags} {
			c := pl.context()
			c.BuildTags = tags
			t.overlay(&c)
			b, err := c.ImportDir(filepath.Join(t.root, filepath.FromSlash(name)), 0)
			var none *build.NoGoError
			if err != nil && !errors.As(err, &none) {
				return p, fmt.Errorf("%s for %+v: %w", name, pl, err)
			}
			p.add(b, edges)
			for _, f := range slices.Concat(b.GoFiles, b.CgoFiles, b.TestGoFiles, b.XTestGoFiles) {
				built[f] = true
			}
			for _, f := range b.IgnoredGoFiles {
				dead[f] = true
			}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(dead)) {
		if !built[f] {
			p.Dead = append(p.Dead, path.Join(name, f))
		}
	}
	p.Edges = slices.SortedFunc(maps.Keys(edges),
		func(a, b Edge) int { return strings.Compare(a.To+" "+a.File, b.To+" "+b.File) })
	return p, nil
}

func (p *Package) add(b *build.Package, edges map[Edge]bool) {
	p.Command = p.Command || b.Name == "main"
	if len(b.CgoFiles) > 0 {
		p.Cgo = path.Join(p.Name, b.CgoFiles[0])
	}
	for i, m := range []map[string][]position{b.ImportPos, b.TestImportPos, b.XTestImportPos} {
		for to, at := range m {
			e := Edge{To: to, Test: i > 0}
			if rest, ours := strings.CutPrefix(to, self); ours && (rest == "" || rest[0] == '/') {
				e.To, e.Ours = strings.TrimPrefix(rest, "/"), true
			}
			for _, pos := range at {
				e.File = path.Join(p.Name, filepath.Base(pos.Filename))
				edges[e] = true
			}
		}
	}
}

// edge writes what stands in a file.
func (e *Edge) String() string { return e.File + " imports " + e.To }

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

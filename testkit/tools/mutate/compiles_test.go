package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/moduleroot"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// Every fault compiles: the type checker accepts its package, or gcc its file. So no row of the table can be
// about a fault that the compiler finds. The tests of the package, and the packages that import it, are not
// checked. With -short, one fault in eight is checked.
func TestFaultsCompile(t *testing.T) {
	every := 1
	if testing.Short() {
		every = 8
	}
	c := newCompiler(t)
	for i, f := range Faults() {
		if i%every == 0 {
			expect.Equal(t, c.fault(t, &f), nil, "%s does not compile", f.Name)
		}
	}
}

// A fault that does not compile is refused.
func TestNoCompilation(t *testing.T) {
	c := newCompiler(t)
	for _, f := range []Fault{
		{File: seedFile, Old: "\t\treturn NoManaged\n", New: "\t\treturn 1.5\n"},
		{File: seedFile, Old: "top state, s *unwind.State", New: "top state, s *unwind.Stat"},
		{File: seedFile, Old: "a, end := ", New: "b, end := 1, "},
		{File: "sample/probe/src/relay.c", Old: "#include \"local.h\"\n", New: ""},
	} {
		expect.True(t, c.fault(t, &f) != nil, "%q compiles", f.New)
	}
}

// compiler checks faults of the tree at root. export holds the files of compiled packages by import path, and
// sound the parsed packages by folder.
type compiler struct {
	root   string
	export map[string]string
	sound  map[string]*sources
}

// sources are the files of a package without a fault.
type sources struct {
	set      *token.FileSet
	files    map[string]*ast.File // by name
	packages types.Importer
}

// newCompiler compiles the packages that have faults, and those that they import.
func newCompiler(t *testing.T) *compiler {
	t.Helper()
	root := must.Get(moduleroot.Find())(t)
	c := &compiler{root: root, export: map[string]string{}, sound: map[string]*sources{}}
	list := strings.Fields("list -trimpath -export -deps -f {{.ImportPath}}={{.Export}}")
	for _, f := range Faults() {
		folder := "./" + path.Dir(f.File)
		if strings.HasSuffix(f.File, ".go") && !slices.Contains(list, folder) {
			list = append(list, folder)
		}
	}
	cmd := exec.Command("go", list...)
	cmd.Dir = c.root
	for line := range strings.Lines(string(must.Get(cmd.Output())(t))) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		c.export[name] = file
	}
	return c
}

// fault returns what the compiler finds in a fault.
func (c *compiler) fault(t *testing.T, f *Fault) error {
	t.Helper()
	text := must.Get(f.text(c.root))(t)
	if strings.HasSuffix(f.File, ".go") {
		return c.typeCheck(t, f.File, text)
	}
	return c.c(t, f.File, text)
}

// typeCheck checks the package of a file with another text of the file.
func (c *compiler) typeCheck(t *testing.T, file string, text []byte) error {
	t.Helper()
	p := c.parsed(t, path.Dir(file))
	changed, err := parser.ParseFile(p.set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	name := path.Base(file)
	must.True(t, p.files[name] != nil, "%s is not compiled here", file)
	files := []*ast.File{changed}
	for other, f := range p.files {
		if other != name {
			files = append(files, f)
		}
	}
	conf := types.Config{Importer: p.packages, Sizes: types.SizesFor("gc", "amd64")}
	_, err = conf.Check(path.Dir(file), p.set, files, nil)
	return err
}

// parsed returns the files of the package in a folder.
func (c *compiler) parsed(t *testing.T, folder string) *sources {
	t.Helper()
	if p := c.sound[folder]; p != nil {
		return p
	}
	p := &sources{set: token.NewFileSet(), files: map[string]*ast.File{}}
	p.packages = importer.ForCompiler(p.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.export[path])
	})
	dir := filepath.Join(c.root, folder)
	for _, name := range must.Get(build.ImportDir(dir, 0))(t).GoFiles {
		f, err := parser.ParseFile(p.set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		must.Do(t, err)
		p.files[name] = f
	}
	c.sound[folder] = p
	return p
}

// c checks a C file with another text. The text of a header is checked alone.
func (c *compiler) c(t *testing.T, file string, text []byte) error {
	t.Helper()
	gcc, flags := "gcc", "-fsyntax-only -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function -x c -"
	if strings.HasSuffix(file, "_windows.c") {
		gcc = "x86_64-w64-mingw32-gcc"
	}
	needs.Command(t, gcc)
	if strings.HasPrefix(file, "capi/") {
		flags += " -I../sim/native/worlds/windows" // has what cgo writes
	}
	cmd := exec.Command(gcc, strings.Fields(flags)...)
	cmd.Dir, cmd.Stdin = filepath.Join(c.root, path.Dir(file)), bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// change replaces text[from:to] of a file by put.
type change struct {
	file, op string // file is relative to the module's root
	text     []byte
	from, to int
	put      string
}

// mutant is the file with the change.
func (c *change) mutant() []byte {
	return slices.Concat(c.text[:c.from], []byte(c.put), c.text[c.to:])
}

// line says where the change is, which operator made it, and what caught it.
func (c *change) line(by string) string {
	n := 1 + bytes.Count(c.text[:c.from], []byte("\n"))
	return strings.TrimSpace(fmt.Sprintf("%s:%d: %s  %s", c.file, n, c.op, by))
}

// diff shows the lines before and after the change.
func (c *change) diff() string {
	start := bytes.LastIndexByte(c.text[:c.from], '\n') + 1
	end := len(c.text)
	if i := bytes.IndexByte(c.text[c.to:], '\n'); i >= 0 {
		end = c.to + i
	}
	sides := ""
	for _, side := range []struct{ sign, text string }{{"-", string(c.text[start:end])},
		{"+", string(c.text[start:c.from]) + c.put + string(c.text[c.to:end])}} {
		for l := range strings.Lines(side.text) {
			sides += "  " + side.sign + strings.TrimRight(l, " \t\n") + "\n"
		}
	}
	return sides
}

// changes lists the changes of a package's files, and returns the check of a change before it runs.
func changes(root, pkg string) (all []change, check func(*change) error, err error) {
	sound := func(*change) error { return nil }
	dir := filepath.Join(root, filepath.FromSlash(pkg))
	c, err := filepath.Glob(filepath.Join(dir, "*.[ch]"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range c {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, changesOfC(pkg+"/"+filepath.Base(path), text)...)
	}
	if m, _ := filepath.Glob(filepath.Join(dir, "*.go")); m == nil {
		return all, sound, nil
	}
	p, err := load(root, pkg)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range p.files {
		all = append(all, p.changes(f)...)
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.file, b.file), a.from-b.from) })
	return all, p.check, nil
}

// goPackage is a package with its syntax and types.
type goPackage struct {
	set   *token.FileSet
	files []*goFile
	conf  types.Config
	types *types.Package
	info  types.Info
	cgo   bool // the types of C are unknown, so only the compiler can check a mutant
}

type goFile struct {
	name string // relative to the module's root
	text []byte
	tree *ast.File
}

// load reads a package as the go command compiles it for this system.
func load(root, pkg string) (*goPackage, error) {
	cmd := exec.Command("go", "list", "-trimpath", "-export", "-deps",
		"-json=ImportPath,Export,GoFiles,CgoFiles", "./"+pkg)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	type listed struct {
		ImportPath, Export string
		GoFiles, CgoFiles  []string
	}
	var p listed
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); { // the package itself comes last
		p = listed{}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
	}
	g := &goPackage{set: token.NewFileSet(), cgo: p.CgoFiles != nil,
		info: types.Info{Defs: map[*ast.Ident]types.Object{}}}
	g.conf = types.Config{FakeImportC: true, Importer: importer.ForCompiler(g.set, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		f := &goFile{name: pkg + "/" + name}
		if f.text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(f.name))); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(g.set, f.name, f.text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		g.files = append(g.files, f)
	}
	if g.cgo {
		g.conf.Error = func(error) {}
	}
	if g.types, err = g.conf.Check(p.ImportPath, g.set, g.trees("", nil), &g.info); g.cgo {
		err = nil
	}
	return g, err
}

// trees are the package's files, one of them replaced.
func (g *goPackage) trees(name string, tree *ast.File) (trees []*ast.File) {
	for _, f := range g.files {
		if f.name == name {
			trees = append(trees, tree)
		} else {
			trees = append(trees, f.tree)
		}
	}
	return trees
}

// check returns the first error of go/types for a mutant.
func (g *goPackage) check(c *change) error {
	if !strings.HasSuffix(c.file, ".go") {
		return nil
	}
	tree, err := parser.ParseFile(g.set, c.file, c.mutant(), parser.SkipObjectResolution)
	if err == nil && !g.cgo {
		_, err = g.conf.Check(g.types.Path(), g.set, g.trees(c.file, tree), nil)
	}
	return err
}

// opposite is the operator that replaces another one.
var opposite = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.ADD: "-", token.SUB: "+", token.AND: "|", token.OR: "&", token.SHL: ">>", token.SHR: "<<",
	token.LAND: "||", token.LOR: "&&", token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
	token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=", token.INC: "--", token.DEC: "++",
}

// changes lists the changes of a file in the order of its text.
func (g *goPackage) changes(f *goFile) (all []change) {
	at := func(p token.Pos) int { return g.set.Position(p).Offset }
	add := func(op string, from, to token.Pos, put string) {
		all = append(all, change{f.name, op, f.text, at(from), at(to), put})
	}
	swap := func(t token.Token, pos token.Pos) {
		if put := opposite[t]; put != "" {
			add("swap "+t.String(), pos, pos+token.Pos(len(t.String())), put)
		}
	}
	drop := func(list []ast.Stmt) {
		for _, s := range list {
			if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
				continue
			}
			switch s.(type) {
			case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt,
				*ast.BranchStmt:
				add("drop a statement", s.Pos(), s.End(), "")
			}
		}
	}
	negate := func(cond ast.Expr) {
		if cond != nil {
			add("negate a condition", cond.Pos(), cond.End(),
				"!("+string(f.text[at(cond.Pos()):at(cond.End())])+")")
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			negate(n.Cond)
		case *ast.ForStmt:
			negate(n.Cond)
		case *ast.BinaryExpr:
			swap(n.Op, n.OpPos)
		case *ast.AssignStmt:
			swap(n.Tok, n.TokPos)
		case *ast.IncDecStmt:
			swap(n.Tok, n.TokPos)
		case *ast.BlockStmt:
			drop(n.List)
		case *ast.CaseClause:
			drop(n.Body)
		case *ast.CommClause:
			drop(n.Body)
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add("one more", n.Pos(), n.End(), "("+n.Value+" + 1)")
				add("one less", n.Pos(), n.End(), "("+n.Value+" - 1)")
			}
		case *ast.FuncDecl:
			if n.Body != nil {
				add("return early", n.Body.Lbrace+1, n.Body.Lbrace+1, " return "+g.zeros(n)+";")
			}
		}
		return true
	})
	return all
}

// zeros are a function's results, all of them zero.
func (g *goPackage) zeros(f *ast.FuncDecl) string {
	var zeros []string
	for v := range g.info.Defs[f.Name].Type().(*types.Signature).Results().Variables() {
		zeros = append(zeros, "*new("+types.TypeString(v.Type(), func(p *types.Package) string {
			if p == g.types {
				return ""
			}
			return p.Name()
		})+")")
	}
	return strings.Join(zeros, ", ")
}

// operatorsOfC change what they match on a line to what the second column says. The text between them is
// kept. They fit the style of the C sources here: a space on both sides of an operator.
var operatorsOfC = []struct {
	op    string
	match *regexp.Regexp
	put   string
}{
	{"negate a condition", regexp.MustCompile(`\b(?:if|while) (\(.+\))(?: \{)?$`), "(!$1)"},
	{"swap <", regexp.MustCompile(` (<) `), "<="}, {"swap <=", regexp.MustCompile(` (<=) `), "<"},
	{"swap >", regexp.MustCompile(` (>) `), ">="}, {"swap >=", regexp.MustCompile(` (>=) `), ">"},
	{"swap ==", regexp.MustCompile(` (==) `), "!="}, {"swap !=", regexp.MustCompile(` (!=) `), "=="},
	{"swap +", regexp.MustCompile(`\w (\+) `), "-"}, {"swap -", regexp.MustCompile(`\w (-) `), "+"},
	{"swap &&", regexp.MustCompile(` (&&) `), "||"}, {"swap ||", regexp.MustCompile(` (\|\|) `), "&&"},
	{"one more", regexp.MustCompile(`\b([0-9]+|0x[0-9a-f]+)\b`), "($1 + 1)"},
	{"relax the order", regexp.MustCompile(`(__ATOMIC_(?:ACQUIRE|RELEASE|ACQ_REL|SEQ_CST))`),
		"__ATOMIC_RELAXED"},
	{"drop a statement", regexp.MustCompile(`^\t+((?:[\w.>*\[\]-]+ [-+|&]?= |[a-z_0-9]+\()[^;]*;)$`), ";"},
}

var commentOfC = regexp.MustCompile(`^\s*(?:/?\*|//|#)|/\*|"`)

// changesOfC lists the changes of a C file, line by line.
func changesOfC(name string, text []byte) (all []change) {
	start := 0
	for line := range bytes.Lines(text) {
		code := bytes.TrimRight(line, "\n")
		for _, o := range operatorsOfC {
			if commentOfC.Match(code) {
				break
			}
			for _, m := range o.match.FindAllSubmatchIndex(code, -1) {
				put := strings.ReplaceAll(o.put, "$1", string(code[m[2]:m[3]]))
				all = append(all, change{name, o.op, text, start + m[2], start + m[3], put})
			}
		}
		start += len(line)
	}
	return all
}

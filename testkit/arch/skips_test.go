package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// skipMark begins the reason of every skipped test: the test command counts and prints these
// (testkit/tools/summary), so that no check is left out silently.
const skipMark = "SKIPPED-CHECK: "

// Every skipped test has a reason.
func TestSkipsSayWhy(t *testing.T) {
	tr := tree{root: "../.."}
	folders := must.Get(tr.folders())(t)
	calls := 0
	for _, dir := range folders {
		files, _ := filepath.Glob(filepath.Join(tr.root, dir, "*.go"))
		for _, file := range files {
			b := must.Get(os.ReadFile(file))(t)
			silent, n := skips(t, file, b)
			calls += n
			for _, at := range silent {
				t.Errorf("%s skips a test, and does not begin with %q", at, skipMark)
			}
		}
	}
	expect.True(t, calls >= 50, "only %d calls that skip were found", calls)
}

// skips finds the calls that skip a test, and those among them without a reason.
func skips(t *testing.T, name string, source []byte) (silent []string, n int) {
	t.Helper()
	set := token.NewFileSet()
	f := must.Get(parser.ParseFile(set, name, source, 0))(t)
	testers := namesOfTesters(f)
	ast.Inspect(f, func(x ast.Node) bool {
		call, ok := x.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method.Sel.Name) ||
			!testers[written(method.X)] {
			return true
		}
		n++
		if len(call.Args) == 0 || !strings.HasPrefix(firstText(call.Args[0]), skipMark) {
			silent = append(silent, set.Position(call.Pos()).String())
		}
		return true
	})
	return silent, n
}

// namesOfTesters are the parameters, and the fields as ".name", whose type is of package
// testing. Simulated threads have a Skip of their own.
func namesOfTesters(f *ast.File) map[string]bool {
	names := map[string]bool{}
	var dot string
	add := func(l *ast.FieldList) {
		for _, field := range l.List {
			for _, n := range field.Names {
				if ofTesting(field.Type) {
					names[dot+n.Name] = true
				}
			}
		}
	}
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.FuncType:
			dot = ""
			add(x.Params)
		case *ast.StructType:
			dot = "."
			add(x.Fields)
		}
		return true
	})
	return names
}

func ofTesting(typ ast.Expr) bool {
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	s, ok := typ.(*ast.SelectorExpr)
	return ok && written(s.X) == "testing" && slices.Contains([]string{"T", "B", "F", "TB"}, s.Sel.Name)
}

// written is a variable's name, or a field's with a point before it.
func written(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return "." + x.Sel.Name
	}
	return ""
}

// firstText is the string at the beginning of an expression, or "".
func firstText(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		return strings.Trim(x.Value, "`\"")
	case *ast.BinaryExpr:
		return firstText(x.X)
	}
	return ""
}

// The check finds each way to skip without a reason, and nothing else.
func TestSilentSkipIsSeen(t *testing.T) {
	for _, c := range []struct {
		name, body string
		n, silent  int
	}{
		{"a reason", `func f(t *testing.T) { t.Skip("SKIPPED-CHECK: no gcc") }`, 1, 0},
		{"a format", `func f(b *testing.B) { b.Skipf("SKIPPED-CHECK: no %s", "gcc") }`, 1, 0},
		{"a reason and more", `func f(tb testing.TB) { tb.Skip("SKIPPED-CHECK: no " + name) }`, 1, 0},
		{"no reason", `func f(t *testing.T) { t.Skip() }`, 1, 1},
		{"another reason", `func f(t *testing.T) { t.Skip("no gcc") }`, 1, 1},
		{"a reason that is computed", `func f(t testing.TB) { t.Skip(why()) }`, 1, 1},
		{"SkipNow", `func f(f *testing.F) { f.SkipNow() }`, 1, 1},
		{"in a closure", `func f() { run(func(t *testing.T) { t.Skipf("no %s", x) }) }`, 1, 1},
		{"of a field", `type w struct{ t *testing.T }; func (w *w) f() { w.t.Skip() }`, 1, 1},
		{"a simulated thread", `type w struct{ t *Thread }; func f(t *testing.T, w *w) { w.t.Skip() }`, 0, 0},
		{"a reader", `func f(r *buf.Reader) { r.Skip(8) }`, 0, 0},
	} {
		silent, n := skips(t, c.name, []byte("package p\n"+c.body))
		expect.True(t, n == c.n && len(silent) == c.silent,
			"%s: %d calls, silent %v, want %d and %d", c.name, n, silent, c.n, c.silent)
	}
}

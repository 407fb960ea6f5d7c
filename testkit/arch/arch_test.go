// Package arch tests the project's import edges: for each file that is built on any platform, with C or
// without, in tests or not.
// Glossary. A *room* is a package and the packages it may import. An *edge* is an import in a file. The test
// *kit* is what only tests use; *tools* are what only builders run.
// Strategy. go/build reads each folder once for each platform, so a file for Windows is seen on Linux;
// nothing is compiled. The list of rooms is ordered from the bottom up, and is checked itself. Each rule has
// a test in which a file that breaks it is added to the tree, by name and text, and must be found.
package arch

import (
	"path"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func load(t *testing.T) (*tree, []Package) {
	t.Helper()
	tr := &tree{root: "../.."}
	all := must.Get(tr.all())(t)
	return tr, all
}

func TestImportEdges(t *testing.T) {
	_, all := load(t)
	edges := 0
	for _, p := range all {
		edges += len(p.Edges)
	}
	t.Logf("%d packages, %d imports in files, %d platforms", len(all), edges, len(platforms()))
	for _, v := range append(order(rooms), check(all, rooms)...) {
		t.Error(v)
	}
	for debt := range debts {
		expect.True(t, slices.ContainsFunc(all, func(p Package) bool { return p.owes(debt) }),
			"%q is no debt any more: delete it", debt)
	}
	for _, r := range rooms {
		there := slices.ContainsFunc(all, func(p Package) bool { return p.Name == r.Name })
		expect.True(t, there, "%s is listed and is not there", r.Name)
	}
}

// owes reports whether the package has an edge that is a debt.
func (p *Package) owes(debt string) bool {
	return slices.ContainsFunc(p.Edges,
		func(e Edge) bool { return !e.Test && p.Name+" imports "+e.To == debt })
}

// TestInjectedEdges adds files to the tree that each break a rule.
func TestInjectedEdges(t *testing.T) {
	tr, all := load(t)
	was := map[string]bool{}
	for _, v := range check(all, rooms) {
		was[v.String()] = true
	}
	for _, c := range injected {
		t.Run(c.name, func(t *testing.T) {
			with := *tr
			with.extra = map[string]string{c.file: c.text}
			p := must.Get(with.pkg(folder(c.file)))(t)
			changed := slices.Clone(all)
			if i := slices.IndexFunc(changed, func(q Package) bool { return q.Name == p.Name }); i >= 0 {
				changed[i] = p
			} else {
				changed = append(changed, p)
			}
			var got []Violation
			for _, v := range check(changed, rooms) {
				if !was[v.String()] {
					got = append(got, v)
				}
			}
			must.True(t, slices.ContainsFunc(got, func(v Violation) bool { return v.Rule == c.rule }),
				"%s with\n%s\nbreaks %q, found: %v", c.file, c.text, c.rule, got)
			for _, v := range got {
				t.Log(v)
			}
		})
	}
}

// TestListOfRooms breaks the list itself.
func TestListOfRooms(t *testing.T) {
	for name, list := range map[string][]room{
		"upwards":    {{Name: "stack/seed", May: []string{"stack/merge"}}, {Name: "stack/merge"}},
		"not listed": {{Name: "stack/seed", May: []string{"sead"}}},
		"twice":      {{Name: "stack/seed"}, {Name: "stack/seed"}},
		"itself":     {{Name: "stack/seed", May: []string{"stack/seed"}}},
	} {
		expect.True(t, len(order(list)) == 1, "%s: found %v", name, order(list))
	}
}

// injected are files that break a rule.
var injected = []struct {
	name, file, text, rule string
}{
	{"an image writer reads", "sim/image/x.go", imports("image", "cfi"), "assemblers"},
	{"upwards for Windows only", "stack/seed/x_windows.go", imports("seed", "cmd/record"), "downwards"},
	{"upwards", "process/live/x.go", imports("live", "cmd/record"), "downwards"},
	{"upwards for ARM64 only", "unwind/x_arm64.go", imports("unwind", "stack/merge"), "downwards"},
	{"upwards behind a constraint", "unwind/module/x.go",
		"//go:build windows && arm64\n\n" + imports("module", "unwind"), "downwards"},
	{"upwards with C only", "profiler/x.go",
		"//go:build cgo\n\n" + imports("main", "cmd/record"), "downwards"},
	{"upwards without C only", "profiler/x.go",
		"//go:build !cgo\n\n" + imports("main", "cmd/record"), "downwards"},
	{"upwards behind a tag", "clr/x.go",
		"//go:build oracle\n\n" + imports("clr", "process/live"), "downwards"},
	{"upwards in a test", "pe/x_test.go", imports("pe", "unwind/amd64"), "downwards"},
	{"upwards in a test from outside", "unwind/amd64/x_test.go",
		imports("amd64_test", "cmd/record"), "downwards"},
	{"a table knows unwinding", "cfi/x.go", imports("cfi", "unwind"), "downwards"},
	{"unwinding knows the CLR", "unwind/arm64/x.go", imports("arm64", "clr"), "downwards"},
	{"the CLR knows the system", "clr/contract/x.go", imports("contract", "process/live"), "downwards"},
	{"one architecture knows the other", "unwind/amd64/x.go", imports("amd64", "unwind/arm64"), "downwards"},
	{"one format knows the other", "pe/x.go", imports("pe", "elf"), "downwards"},
	{"the PE assembler reads", "testkit/peasm/x.go", imports("peasm", "pe"), "assemblers"},
	{"the ELF assembler reads", "testkit/elfasm/x.go", imports("elfasm", "internal/buf"), "assemblers"},
	{"an image writer reads on ARM64", "sim/image/x_arm64.go", imports("image", "pe"), "assemblers"},
	{"the product uses the kit", "unwind/module/x.go", imports("module", "testkit/peasm"), "kit"},
	{"the product uses what judges it", "cmd/record/x.go", imports("record", "fuzz"), "kit"},
	{"replay uses what is measured", "testkit/replay/x.go", imports("replay", "bench/peer"), "downwards"},
	{"a command is imported", "cmd/record/x.go", imports("record", "cmd/seedwalk"), "commands"},
	{"a command that is no cmd is imported", "testkit/bundle/x.go",
		imports("bundle", "testkit/tools/mutate"), "commands"},
	{"a test imports a command", "cmd/record/x_test.go", imports("record", "cmd/seedwalk"), "commands"},
	{"C in Go", "stack/merge/x.go", "package merge\n\nimport \"C\"\n", "cgo"},
	{"C in Go for Windows", "process/live/x_windows.go", "package live\n\nimport \"C\"\n", "cgo"},
	{"a comparer in the product", "report/export/x.go",
		other("export", "github.com/google/go-cmp/cmp"), "tests only"},
	{"an oracle in the product", "cfi/x.go",
		other("cfi", "github.com/go-delve/delve/pkg/dwarf/regnum"), "tests only"},
	{"the hot path starts programs", "unwind/amd64/x_windows.go", other("amd64", "os/exec"), "hot path"},
	{"the net below the hot path", "unwind/module/x.go", other("module", "net/http"), "hot path"},
	{"a disassembler below the hot path", "context/memory/x.go",
		other("memory", "golang.org/x/arch/x86/x86asm"), "hot path"},
	{"a package that is not listed", "internal/new/x.go", "package fresh\n", "listed"},
	{"a file that no platform builds", "pe/x.go", "//go:build plan9\n\npackage pe\n", "dead"},
}

func imports(pkg, to string) string { return other(pkg, self+"/"+to) }

func other(pkg, to string) string { return "package " + pkg + "\n\nimport _ \"" + to + "\"\n" }

func folder(file string) string { return path.Dir(file) }

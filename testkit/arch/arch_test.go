// Package arch tests the project's import edges: for each file that is built on any platform, with C or
// without, in tests or not.
// Glossary. A *room* is a package and the packages it may import. An *edge* is an import in a file. The test
// *kit* is what only tests use; *tools* are what only builders run.
// Strategy. go/build reads each folder once for each platform, so a file for Windows is seen on Linux;
// nothing is compiled. The list of rooms is ordered from the bottom up, and is checked itself. Each rule has
// a test in which a file that breaks it is added to the tree, by name and text, and must be found.
package arch

import (
	"slices"
	"testing"

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
		if !slices.ContainsFunc(all, func(p Package) bool { return p.owes(debt) }) {
			t.Errorf("%q is no debt any more: delete it", debt)
		}
	}
	for _, r := range rooms {
		there := slices.ContainsFunc(all, func(p Package) bool { return p.Name == r.Name })
		if !there {
			t.Errorf("%s is listed and is not there", r.Name)
		}
	}
}

// owes reports whether the package has an edge that is a debt.
func (p *Package) owes(debt string) bool {
	return slices.ContainsFunc(p.Edges, func(e Edge) bool { return !e.Test && p.Name+" imports "+e.To == debt })
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
			if !slices.ContainsFunc(got, func(v Violation) bool { return v.Rule == c.rule }) {
				t.Fatalf("%s with\n%s\nbreaks %q, found: %v", c.file, c.text, c.rule, got)
			}
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
		if len(order(list)) != 1 {
			t.Errorf("%s: found %v", name, order(list))
		}
	}
}

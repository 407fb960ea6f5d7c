package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// cgoRooms may contain C: the two libraries, and the folders of tests and benchmarks, including their
// subfolders.
var cgoRooms = []string{"capi", "profiler", "bench"}

// hotPath must not depend, even indirectly, on packages that allocate or print for others, nor on other
// modules.
var hotPath = []string{"context/memory", "context", "unwind", "unwind/amd64", "unwind/arm64",
	"stack/seed", "stack/snapshot"}

// belowHotPath are other modules that readers on the hot path need to load an image.
var belowHotPath = []string{"github.com/klauspost/compress", "golang.org/x/sys"}

var forbiddenBelow = []string{"net", "os/exec", "os/signal", "log", "plugin", "testing"}

// testsOnly are the modules that nothing but tests may import.
var testsOnly = []string{"github.com/google/go-cmp", "github.com/go-delve/delve"}

// assemblers write images for tests and worlds. They are independent of the readers, so that the two can
// disagree.
var assemblers = []string{"sim/image", "testkit/peasm", "testkit/elfasm"}

// shipped are the packages of the kit that product code may use: the command replays the same vectors, with
// the same judges, as the tests.
var (
	kitRooms = []string{"testkit", "fuzz", "bench"}
	shipped  = map[string]string{"cmd/seedwalk/builder": "testkit/replay"}
)

// Violation is a broken rule.
type Violation struct{ Rule, What string }

func (v Violation) String() string { return v.Rule + ": " + v.What }

// below reports whether name is a path or lies below one of them.
func below(name string, paths ...string) bool {
	return slices.ContainsFunc(paths,
		func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

// check applies every rule to the packages.
func check(all []Package, list []room) (out []Violation) {
	say := func(rule, format string, args ...any) {
		out = append(out, Violation{rule, fmt.Sprintf(format, args...)})
	}
	commands, known := map[string]bool{}, map[string]*room{}
	for _, p := range all {
		commands[p.Name] = p.Command
	}
	for i := range list {
		known[list[i].Name] = &list[i]
	}
	for i := range all {
		p := &all[i]
		r := known[p.Name]
		if r == nil {
			say("listed", "%s is no package of testkit/arch/rooms_test.go: give it a line there", p.Name)
			r = &room{Name: p.Name}
		}
		if p.Cgo != "" && !below(p.Name, cgoRooms...) {
			say("cgo", "%s: only %v may use C", p.Cgo, cgoRooms)
		}
		for _, f := range p.Dead {
			say("dead", "%s is built for no platform", f)
		}
		for k := range p.Edges {
			p.edge(r, &p.Edges[k], commands, known, say)
		}
	}
	hot(all, say)
	return out
}

// edge applies the rules for single imports.
func (p *Package) edge(r *room, e *Edge, commands map[string]bool, known map[string]*room,
	say func(rule, format string, args ...any)) {
	switch {
	case !e.Ours && below(e.To, testsOnly...) && !e.Test && !below(p.Name, kitRooms...):
		say("tests only", "%s", e)
	case !e.Ours:
	case slices.Contains(assemblers, p.Name) && !e.Test && known[e.To] != nil:
		say("assemblers", "%s: an assembler shares nothing with a reader", e)
	case commands[e.To] || e.To == "cmd/seedwalk":
		say("commands", "%s: nothing imports a command", e)
	case e.Test:
		if e.To != p.Name && !below(e.To, "testkit") && !slices.Contains(r.May, e.To) &&
			!slices.Contains(r.Test, e.To) && !slices.Equal(r.Test, everything) {
			say("downwards", "%s, which is not below it, not even in a test", e)
		}
	case below(e.To, kitRooms...) && !below(p.Name, kitRooms...) && !below(e.To, shipped[p.Name]):
		say("kit", "%s: product code does not use what is for tests and builders", e)
	case !slices.Contains(r.May, e.To) && debts[p.Name+" imports "+e.To] == "":
		say("downwards", "%s, which is not below it", e)
	}
}

// hot follows the imports of the hot path's packages, including indirect ones.
func hot(all []Package, say func(rule, format string, args ...any)) {
	at := map[string]*Package{}
	for i := range all {
		at[all[i].Name] = &all[i]
	}
	for _, top := range hotPath {
		seen, todo, bad := map[string]bool{}, []string{top}, map[string]string{}
		for len(todo) > 0 {
			p := at[todo[0]]
			todo = todo[1:]
			if p == nil || seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			for i := range p.Edges {
				switch e := &p.Edges[i]; {
				case e.Test:
				case e.Ours:
					todo = append(todo, e.To)
				case below(e.To, forbiddenBelow...), strings.Contains(e.To, ".") &&
					!below(e.To, belowHotPath...):
					bad[e.To] = e.String()
				}
			}
		}
		for _, to := range slices.Sorted(maps.Keys(bad)) {
			say("hot path", "%s depends on %s: %s", top, to, bad[to])
		}
	}
}

// order checks the list itself: a room may import only rooms before it.
func order(list []room) (out []Violation) {
	place := map[string]int{}
	for i, r := range list {
		if _, twice := place[r.Name]; twice {
			out = append(out, Violation{"list", r.Name + " is listed twice"})
		}
		place[r.Name] = i
	}
	for i, r := range list {
		for _, m := range r.May {
			switch k, ok := place[m]; {
			case !ok:
				out = append(out, Violation{"list", r.Name + " may import " + m + ", which is not listed"})
			case k >= i && !below(m, "testkit"):
				out = append(out, Violation{"list", r.Name + " may import " + m + ", which stands below it"})
			}
		}
	}
	return out
}

// Package arch holds the test of the project's import edges.
package arch

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const self = "github.com/seedwalk/seedwalk/"

// allowed lists what each package may import of the project, beyond the
// standard library. Data flows one way; a package that is not named here may
// import anything of the project but cmd.
var allowed = map[string][]string{
	"internal/buf": {},
	"memory":       {},
	"context":      {},
	"unwind":       {},
	"pe":           {"internal/buf"},
	"elf":          {"internal/buf"},
	"cfi":          {"internal/buf", "memory"},
	"module":       {"elf", "cfi", "pe"},
	"unwind/amd64": {"unwind", "context", "memory", "module", "cfi", "pe", "elf"},
	"unwind/arm64": {"unwind", "context", "memory", "module", "cfi", "pe", "elf"},
	"clr":          {"context", "memory"},
	"clr/stubs":    {"pe"},
	"clr/contract": {"clr", "elf", "pe", "module", "context", "memory", "unwind", "unwind/amd64", "internal/buf"},
	"seed":         {"context", "memory", "unwind", "unwind/amd64", "unwind/arm64"},
	"snapshot":     {"clr", "memory", "seed", "unwind", "unwind/amd64", "unwind/arm64"},
	"merge":        {"cfi", "pe", "clr", "context", "memory", "module", "seed", "unwind", "unwind/amd64", "unwind/arm64"},
	"wire":         {"unwind"},
	"export":       {},
	"symbol":       {"elf", "pe", "cfi", "module"},
}

// cgo may stand in these folders only.
var cgo = []string{"capi", "profiler", "bench"}

// hotPath must not depend, however far, on what allocates or prints.
var hotPath = []string{"memory", "context", "unwind", "unwind/amd64", "unwind/arm64", "seed", "snapshot"}

var forbiddenBelow = []string{"golang.org/x/arch", "github.com/go-delve/delve", "github.com/google/go-cmp", "net", "os/exec", "os/signal"}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	CgoFiles   []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,CgoFiles", self+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportEdges(t *testing.T) {
	seen := 0
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, self)
		may, listed := allowed[name]
		for _, i := range p.Imports {
			dep, ours := strings.CutPrefix(i, self)
			switch {
			case !ours:
			case strings.HasPrefix(dep, "cmd/"):
				t.Errorf("%s imports %s: nothing may import a command", name, dep)
			case listed && !slices.Contains(may, dep):
				t.Errorf("%s imports %s, which is not below it", name, dep)
			}
		}
		if listed {
			seen++
		}
		if top, _, _ := strings.Cut(name, "/"); len(p.CgoFiles) > 0 && !slices.Contains(cgo, top) {
			t.Errorf("%s uses cgo: only %v may", name, cgo)
		}
		if slices.Contains(hotPath, name) {
			for _, d := range p.Deps {
				if slices.ContainsFunc(forbiddenBelow, func(f string) bool { return d == f || strings.HasPrefix(d, f+"/") }) {
					t.Errorf("%s depends on %s, which has no place below the hot path", name, d)
				}
			}
		}
	}
	if seen < len(allowed)-2 {
		t.Errorf("only %d of the %d listed packages exist: is the list out of date?", seen, len(allowed))
	}
}

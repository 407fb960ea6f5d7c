package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// nodeScript calls .NET between two calculations of its own.
const nodeScript = `
function spin(ms) { let n = 0; const end = Date.now() + ms; while (Date.now() < end) for (let i = 0; i < 1e5; i++) n = (n * 31 + i) | 0; return n }
function inner() { return require(process.env.SWHOST_ADDON) }
function outer() { return inner() }
function warm() { return spin(300) }
outer(); warm(); console.log(process.pid)
`

// .NET inside node: the walk passes through code that V8 compiled. Its names are in node's perf map, which is
// also used in a recording that is reported later. Frames below such code are doubtful.
func TestNode(t *testing.T) {
	node := needs.Command(t, "node")
	dir := tempdir.New(t)
	script, kept := filepath.Join(dir, "app.js"), filepath.Join(dir, "out.swrec")
	must.Do(t, os.WriteFile(script, []byte(nodeScript), 0o644))
	env := []string{"env", "SWHOST_ADDON=" + need(t, "out", "samples", "nodehost.node"),
		"SWHOST_RUNTIME=" + runtime9(t),
		"SWHOST_APP=" + need(t, "out", "samples", "Demo.exe"), "SWHOST_ARG=1"}
	r := recordBy(t, env, "--output "+kept, node, "--perf-basic-prof", "--always-sparkplug",
		"--no-logfile-per-isolate", "--logfile="+filepath.Join(dir, "v8.log"), script)
	r.ok(t)
	lines := strings.Fields(r.stdout)
	os.Remove("/tmp/perf-" + lines[len(lines)-1] + ".map")
	seen := judgeNode(t, r.jsonProfile, dir)
	expect.Figures(t, seen.jit != 0 && seen.mixed != 0 && seen.incomplete*50 <= seen.samples,
		"%d samples, %d incomplete, %d through V8's code, %d of them from managed code", seen.samples,
		seen.incomplete, seen.jit, seen.mixed)
	again := filepath.Join(dir, "again.json")
	seedwalk(t, "convert", kept, again).ok(t)
	p := readJSONProfile(t, again)
	expect.Equal(t, judgeNode(t, &p, dir), seen, "in the recording")
}

// nodeSeen counts samples by the contents of their stacks.
type nodeSeen struct{ samples, incomplete, jit, mixed int64 }

func judgeNode(t *testing.T, p *jsonProfile, dir string) (seen nodeSeen) {
	for _, s := range p.Stacks {
		n := s.Count
		seen.samples += n
		if !s.Complete {
			seen.incomplete += n
		}
		var names []string
		first := -1
		for i, f := range s.Frames {
			f := &p.Frames[f]
			names = append(names, f.Name)
			if f.Module == "[other JIT]" && first < 0 {
				first = i
			} else if first >= 0 && !f.Doubtful {
				t.Errorf("%s below %s is not doubtful", f.Name, names[first])
			}
		}
		if first < 0 || !s.Complete {
			continue
		}
		seen.jit += n
		expect.Equal(t, names[len(names)-1], "_start", "a whole stack ends in")
		has := func(part string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, part) })
		}
		if has("Demo.Main") && has("inner "+dir) && has("outer ") {
			seen.mixed += n
		}
	}
	return seen
}

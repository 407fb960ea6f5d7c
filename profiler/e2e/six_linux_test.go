package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var sixPrograms = flag.Bool("six", false, "TestSixPrograms records all six")

// mostUnnamed is the largest share of CPU self time, in percent, that may be in rows without a name or role.
const mostUnnamed = 10.0

// Six programs of other authors, and the demo: nearly all CPU self time is in rows with a name or
// a role, though their runtimes have no symbols.
func TestSixPrograms(t *testing.T) {
	dir := tempdir.New(t)
	runtime := runtime9(t)
	host, ten := need(t, "out", "bin", "swhost"),
		need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	library, err := filepath.Glob(filepath.Join(runtime, "System*.dll"))
	must.True(t, err == nil && len(library) > 0, "%v", err)
	references := append(library, filepath.Join(runtime, "netstandard.dll"),
		filepath.Join(runtime, "mscorlib.dll"))
	fsharp := []string{host, runtime, need(t, "out", "samples", "fsc", "Fsc.exe"), "--noframework",
		"--targetprofile:netcore", "-a",
		"--out:" + filepath.Join(dir, "fs.dll"), "-r:" + need(t, "out", "samples", "fsc", "FSharp.Core.dll")}
	for _, r := range references {
		fsharp = append(fsharp, "-r:"+r)
	}
	csharp := append([]string{host, runtime, need(t, "out", "samples", "csc", "Csc.exe"),
		filepath.Join(dir, "cs.exe"), filepath.Join(root, "profiler", "testdata", "Awaits.cs")}, library...)
	script := filepath.Join(dir, "app.js")
	must.Do(t, os.WriteFile(script, []byte("require(process.env.SWHOST_ADDON)\n"), 0o644))
	merged, input := generatorInput(t, dir, runtime)
	node := []string{"SWHOST_ADDON=" + need(t, "out", "samples", "nodehost.node"),
		"SWHOST_RUNTIME=" + runtime, "SWHOST_APP=" + need(t, "out", "samples", "Demo.exe"), "SWHOST_ARG=4"}
	for _, c := range []struct {
		name string
		six  bool // only with -six
		env  []string
		argv []string
	}{
		{"C# code generator", true, nil,
			[]string{host, merged, filepath.Join(merged, "AutoRest.CSharp.dll"), "--standalone", input}},
		{"F# compiler", true, nil,
			append(fsharp, filepath.Join(root, "clr", "demangle", "testdata", "names.fs"))},
		{"C# compiler", false, nil, csharp},
		{"Kestrel server", true, nil, []string{host, runtime, need(t, "out", "samples", "Web.exe"), "4"}},
		{".NET in node", false, node, []string{"node", script}},
		{".NET 10 server", false, nil, []string{ten, "tools", "list"}},
		{"demo", false, nil, app(t, "Demo", "4")},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			if c.argv[0] == "node" {
				needs.Command(t, "node")
			}
			if c.six && !*sixPrograms {
				t.Skip("SKIPPED-CHECK: make six records this program, which takes longer")
			}
			base := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
			env := append(c.env, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
			argv := append([]string{tool(t), "record", "--rate", "499", "--output",
				base + ".json," + base + ".swrec", "--"}, c.argv...)
			run(t, 8*time.Minute, env, argv...).ok(t)
			run(t, time.Minute, nil, tool(t), "report", "--metric", "cpu", "--output",
				base+".folded", base+".swrec").ok(t)
			frames, rows, all := unnamedLeaves(t, base+".json", ""), unnamedRows(t, base+".folded", false),
				unnamedRows(t, base+".folded", true)
			fmt.Printf("%-18s CPU self time without a name: %5.1f %% of frames, %5.2f %% of rows; %5.2f %% of all rows\n", c.name, frames, rows, all)
			if rows > mostUnnamed || c.name == "demo" && all > 2 {
				t.Errorf("%.1f %% of CPU self time and %.1f %% of rows have neither a name nor a role", rows, all)
			}
		})
	}
}

// unnamed is a row without a name, and without a role that says what it does.
var unnamed = regexp.MustCompile(`\+0x[0-9a-f]+$|^(\? )?\[runtime\]$`)

// unnamedRows returns the share in percent of a folded profile that is in rows without a name or role:
// of the leaves, or of all rows.
func unnamedRows(t *testing.T, path string, every bool) float64 {
	b := must.Get(os.ReadFile(path))(t)
	var all, without float64
	for line := range strings.Lines(string(b)) {
		at := strings.LastIndexByte(line, ' ')
		weight := must.Get(strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64))(t)
		rows := strings.Split(line[:at], ";")
		if !every {
			rows = rows[len(rows)-1:]
		}
		for _, row := range rows {
			all += weight
			if unnamed.MatchString(row) {
				without += weight
			}
		}
	}
	return 100 * without / all
}

// unnamedLeaves returns the share in percent of CPU time whose innermost frame has no name, of those in a
// module or, for "", of all.
func unnamedLeaves(t *testing.T, path, module string) float64 {
	p := readJSONProfile(t, path)
	var all, without float64
	for _, s := range p.Stacks {
		if len(s.Frames) == 0 || module != "" && p.Frames[s.Frames[0]].Module != module {
			continue
		}
		all += float64(s.CPU)
		if unnamed.MatchString(p.Frames[s.Frames[0]].Name) {
			without += float64(s.CPU)
		}
	}
	return 100 * without / all
}

// generatorInput makes two folders. merged contains the runtime and the generator; the generator's
// libraries replace those of the runtime. input contains a model of a service.
func generatorInput(t *testing.T, dir, runtime string) (merged, input string) {
	t.Helper()
	merged, input = filepath.Join(dir, "generator"), filepath.Join(dir, "shop")
	generator := filepath.Dir(need(t, ".cache", "roslyn", "package", "AutoRest.CSharp.dll"))
	linked(t, merged, runtime, generator)
	must.Do(t, os.Mkdir(input, 0o755))
	shared := []string{filepath.Join(merged, "Generator.Shared"), filepath.Join(merged, "Azure.Core.Shared")}
	settings := must.Get(json.Marshal(map[string]any{"output-folder": ".", "namespace": "Shop",
		"library-name": "Shop", "flavor": "azure", "use-model-reader-writer": true,
		"shared-source-folders": shared}))(t)
	writeTo(t, filepath.Join(input, "Configuration.json"), string(settings))
	// The generator reads the model once, so the order of its fields counts.
	writeTo(t, filepath.Join(input, "tspCodeModel.json"), readFile(t, filepath.Join("testdata", "shop.json")))
	return merged, input
}

// linked makes a folder of links to the files of others. A later one replaces files of the same name.
func linked(t *testing.T, folder string, others ...string) {
	t.Helper()
	must.Do(t, os.Mkdir(folder, 0o755))
	for _, from := range others {
		from := must.Get(filepath.Abs(from))(t)
		files := must.Get(os.ReadDir(from))(t)
		for _, f := range files {
			at := filepath.Join(folder, f.Name())
			os.Remove(at)
			must.Do(t, os.Symlink(filepath.Join(from, f.Name()), at))
		}
	}
}

// copied makes a file from another's content, in place of a link.
func copied(t *testing.T, to, from string) {
	t.Helper()
	b := readFile(t, from)
	os.Remove(to)
	must.Do(t, os.WriteFile(to, []byte(b), 0o755))
}

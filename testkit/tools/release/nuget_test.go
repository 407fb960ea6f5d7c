package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The main package, a pointer, lists the package of each runtime identifier. Such a package contains the
// program where its own settings say. Two builds give equal bytes.
func TestNuGet(t *testing.T) {
	one, two := nugetPackages(t), nugetPackages(t)
	pointer := zipped(t, one["seedwalk.0.9.0.nupkg"])
	settings := string(pointer["tools/any/any/DotnetToolSettings.xml"].data)
	rids := regexp.MustCompile(`RuntimeIdentifier="([^"]*)" Id="([^"]*)"`).FindAllStringSubmatch(settings, -1)
	if len(rids) != 2 || len(one) != 3 || !strings.Contains(settings, `<DotNetCliTool Version="2">`) ||
		!strings.Contains(settings, `<Command Name="seedwalk">`) {
		t.Fatalf("%d packages, %v in\n%s", len(one), rids, settings)
	}
	for _, rid := range rids {
		files := zipped(t, one[rid[2]+".0.9.0.nupkg"])
		dir := "tools/any/" + rid[1] + "/"
		m := regexp.MustCompile(`EntryPoint="([^"]*)" Runner="executable"`).FindSubmatch(files[dir+
			"DotnetToolSettings.xml"].data)
		if m == nil {
			t.Fatalf("%s: no entry point", rid[1])
		}
		if program := files[dir+string(m[1])]; string(program.data) != "a program" ||
			program.mode&0o111 == 0 {
			t.Errorf("%s: %s is %q, %v", rid[1], m[1], program.data, program.mode)
		}
		types := string(files["[Content_Types].xml"].data)
		for name := range files {
			if ext := filepath.Ext(name); name != "[Content_Types].xml" &&
				!strings.Contains(types, `Extension="`+strings.TrimPrefix(ext, ".")+`"`) &&
				!strings.Contains(types, `PartName="/`+name+`"`) {
				t.Errorf("%s has no content type", name)
			}
		}
	}
	for name, data := range one {
		expect.Slices(t, data, two[name], "two builds of %s differ", name)
	}
}

// The client of NuGet installs each package from a folder.
func TestNuGetInstalls(t *testing.T) {
	needs.Command(t, "nuget")
	feed, target := t.TempDir(), t.TempDir()
	for name, data := range nugetPackages(t) {
		must.Do(t, os.WriteFile(filepath.Join(feed, name), data, 0o600))
	}
	t.Setenv("HOME", t.TempDir())
	for id, want := range map[string]string{"seedwalk": "any/DotnetToolSettings.xml",
		"seedwalk.linux-x64": "linux-x64/seedwalk", "seedwalk.win-x64": "win-x64/seedwalk.exe"} {
		out := must.Run(t, exec.Command("nuget", "install", id, "-Version", "0.9.0", "-Source", feed,
			"-OutputDirectory", target, "-NonInteractive"))
		_, err := os.Stat(filepath.Join(target, id+".0.9.0", "tools", "any", want))
		expect.True(t, err == nil, "%v\n%s", err, out)
	}
}

func nugetPackages(t *testing.T) map[string][]byte {
	t.Helper()
	folder, out := t.TempDir(), t.TempDir()
	tools := []tool{{"linux-x64", filepath.Join(folder, "seedwalk")},
		{"win-x64", filepath.Join(folder, "seedwalk.exe")}}
	for _, p := range tools {
		must.Do(t, os.WriteFile(p.file, []byte("a program"), 0o600))
	}
	must.Do(t, writeNuGet(tools, "0.9.0", out, time.Unix(1700000000, 0).UTC()))
	files := map[string][]byte{}
	names, _ := filepath.Glob(filepath.Join(out, "*"))
	for _, name := range names {
		data := must.Get(os.ReadFile(name))(t)
		files[filepath.Base(name)] = data
	}
	return files
}

func zipped(t *testing.T, data []byte) map[string]part {
	t.Helper()
	z := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	files := map[string]part{}
	for _, f := range z.File {
		r, err := f.Open()
		must.Do(t, err)
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", f.Name, err))
		}
		files[f.Name] = part{f.Name, f.Mode(), content}
	}
	return files
}

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
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
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The SBOM of the test's own program has the modules that it was linked from.
func TestSBOM(t *testing.T) {
	program := must.Get(os.Executable())(t)
	var a, b bytes.Buffer
	must.Do(t, writeSBOM(&a, program, "0.9.0"))
	err := writeSBOM(&b, program, "0.9.0")
	must.True(t, err == nil && a.String() == b.String(), "two SBOMs of one program differ: %v", err)
	var got bom
	must.Do(t, json.Unmarshal(a.Bytes(), &got))
	expect.True(t, got.Format == "CycloneDX" &&
		got.Metadata.Component.PURL == "pkg:golang/github.com/seedwalk/seedwalk@v0.9.0",
		"SBOM of %s %s", got.Format, got.Metadata.Component.PURL)
	expect.True(t, got.Components[0].Name == "std" && strings.HasPrefix(got.Components[0].Version, "go1."),
		"first component %+v", got.Components[0])
	text := filepath.Join(t.TempDir(), "text")
	must.Do(t, os.WriteFile(text, []byte("no program"), 0o600))
	expect.True(t, writeSBOM(io.Discard, text, "0.9.0") != nil, "a file that is no Go program has an SBOM")
}

// unpacked is a tar's files by name.
func unpacked(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		must.Do(t, err)
		files[h.Name] = must.Get(io.ReadAll(tr))(t)
	}
}

// Every descriptor of the image names a blob of its size and digest, down to the tool.
func TestOCI(t *testing.T) {
	program := filepath.Join(t.TempDir(), "tool")
	must.Do(t, os.WriteFile(program, []byte("a program"), 0o600))
	tools := []tool{{"amd64", program}, {"arm64", program}}
	var a, b bytes.Buffer
	for _, w := range []io.Writer{&a, &b} {
		must.Do(t, writeOCI(w, tools, "0.9.0", time.Unix(1700000000, 0).UTC()))
	}
	must.Slices(t, a.Bytes(), b.Bytes(), "two images of one program differ")
	files := unpacked(t, &a)
	platforms := map[string]int{}
	var follow func(d descriptor)
	follow = func(d descriptor) {
		data := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); sum != d.Digest || len(data) != d.Size {
			t.Errorf("%s of %d bytes is %s of %d", d.Digest, d.Size, sum, len(data))
		}
		if d.Platform != nil {
			platforms[d.Platform.Architecture]++
		}
		if !strings.HasSuffix(d.MediaType, "+json") || strings.Contains(d.MediaType, "config") {
			return
		}
		var next struct {
			Manifests, Layers []descriptor
			Config            *descriptor
		}
		must.Do(t, json.Unmarshal(data, &next))
		for _, d := range append(next.Manifests, next.Layers...) {
			follow(d)
		}
		if next.Config != nil {
			follow(*next.Config)
		}
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json: %v, %d manifests", err, len(index.Manifests))
	}
	follow(index.Manifests[0])
	expect.True(t, platforms["amd64"] == 1 && platforms["arm64"] == 1, "platforms %v", platforms)
}

// Every command has a page. groff formats it without a warning, and no word of the help is lost.
func TestManPages(t *testing.T) {
	folder := tempdir.New(t)
	tool := filepath.Join(folder, "seedwalk")
	build := exec.Command("go", "build", "-o", tool, "../../../cmd/seedwalk")
	must.Run(t, build)
	must.Do(t, run([]string{"man", "-version", "1.2.3", "-o", folder, tool}))
	pages, _ := filepath.Glob(filepath.Join(folder, "*.1"))
	expect.True(t, len(pages) >= 18, "%d pages", len(pages))
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		expect.True(t, bytes.Contains(text, []byte(".SH NAME")) &&
			bytes.Contains(text, []byte(".SH SYNOPSIS")), "%s:\n%.300s", page, text)
	}
	groff := needs.Command(t, "groff")
	for _, page := range pages {
		format := exec.Command(groff, "-man", "-Tascii", "-ww", "-P-c", "-P-b", "-P-u", "-rLL=200n", page)
		var shown, said bytes.Buffer
		format.Stdout, format.Stderr = &shown, &said
		if err := format.Run(); err != nil || said.Len() > 0 {
			t.Errorf("%s: %v %s", filepath.Base(page), err, said.String())
		}
		args := []string{"help"}
		if name := strings.TrimSuffix(filepath.Base(page), ".1"); name != "seedwalk" {
			args = []string{strings.TrimPrefix(name, "seedwalk-"), "--help"}
		}
		help, _ := exec.Command(tool, args...).Output()
		if have, want := words(shown.String()), words(string(help)); !follows(have, want) {
			t.Errorf("%s lost words:\n%s", page, shown.String())
		}
	}
	expect.True(t, run([]string{"man", "-o", folder, "/bin/true"}) != nil,
		"a tool without commands has manual pages")
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func words(s string) []string { return strings.Fields(notWord.ReplaceAllString(s, " ")) }

// follows tells whether all words of want are in have, in their order. The first is "Usage",
// which a manual page calls SYNOPSIS. Upper case is that of headings.
func follows(have, want []string) bool {
	for _, w := range want {
		if w == "Usage" {
			continue
		}
		for len(have) > 0 && !strings.EqualFold(have[0], w) {
			have = have[1:]
		}
		if len(have) == 0 {
			return false
		}
		have = have[1:]
	}
	return true
}

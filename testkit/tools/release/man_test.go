package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Every command has a page. groff formats it without a warning, and no word of the help is lost.
func TestManPages(t *testing.T) {
	folder := tempdir.New(t)
	tool := filepath.Join(folder, "seedwalk")
	build := exec.Command("go", "build", "-o", tool, "../../../cmd/seedwalk")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must.Do(t, run([]string{"man", "-version", "1.2.3", "-o", folder, tool}))
	pages, _ := filepath.Glob(filepath.Join(folder, "*.1"))
	if len(pages) < 18 {
		t.Errorf("%d pages", len(pages))
	}
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		if !bytes.Contains(text, []byte(".SH NAME")) || !bytes.Contains(text, []byte(".SH SYNOPSIS")) {
			t.Errorf("%s:\n%.300s", page, text)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no groff: the manual pages were not formatted")
	}
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
	if err := run([]string{"man", "-o", folder, "/bin/true"}); err == nil {
		t.Error("a tool without commands has manual pages")
	}
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

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// Commands of the tool as documents write them: in a fenced block, and between backquotes.
var (
	fencedCommand  = regexp.MustCompile(`(?m)(?:^|\$ |\| )(?:out/bin/)?seedwalk ([a-z]+)((?: [^#|\n]*)?)`)
	quotedCommand  = regexp.MustCompile("`(?:out/bin/)?seedwalk ([a-z]+)((?: [^`|\\n]*)?)")
	documentedFlag = regexp.MustCompile(`(?:^| )(--[a-z-]+)`)
)

// TestDocumentedCommands checks that the commands and flags in the documents exist in the tool's help.
func TestDocumentedCommands(t *testing.T) {
	out, errOut, _, _ := tool(t, "--help")
	general := out + errOut
	help := map[string]string{}
	files := must.Get(filepath.Glob("../../docs/*.md"))(t)
	seen := 0
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		b := must.Get(os.ReadFile(file))(t)
		for _, m := range commandsIn(string(b)) {
			name, rest := m[1], m[2]
			if !strings.Contains(general, "\n  "+name+" ") {
				t.Errorf("%s: `%s`: there is no command %s", file, strings.TrimSpace(m[0]), name)
				continue
			}
			if help[name] == "" {
				out, errOut, _, _ := tool(t, name, "--help")
				help[name] = out + errOut
			}
			own, _, _ := strings.Cut(rest, " -- ")
			for _, f := range documentedFlag.FindAllStringSubmatch(own, -1) {
				seen++
				known := regexp.MustCompile(`--[a-z-]+`).FindAllString(help[name], -1)
				if !slices.Contains(append(known, "--help"), f[1]) {
					t.Errorf("%s: `%s`: %s has no flag %s", file, strings.TrimSpace(m[0]), name, f[1])
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d flags were recognized in the documents", seen)
	}
}

// commandsIn returns the commands in a Markdown text: the match, the name, and the arguments.
func commandsIn(text string) (all [][]string) {
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			all = append(all, fencedCommand.FindAllStringSubmatch(part, -1)...)
		} else {
			all = append(all, quotedCommand.FindAllStringSubmatch(part, -1)...)
		}
	}
	return all
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
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
	expect.True(t, seen >= 30, "only %d flags were recognized in the documents", seen)
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

// TestCompletionKnowsAll: every command except help has a help text, and the flags in these texts can be
// completed.
func TestCompletionKnowsAll(t *testing.T) {
	for _, c := range commands {
		expect.True(t, c.name == "help" || c.help != "", "%s has no help text", c.name)
	}
	for _, want := range []struct{ command, flag string }{{"record", "--pid"},
		{"record", "--keep-suspension"}, {"report", "--since"}, {"diff", "--until"},
		{"waits", "--follow"}, {"stack", "--core"}} {
		flags := flagsIn(find(want.command).help)
		expect.True(t, slices.Contains(flags, want.flag), "%s: no %s in %v", want.command, want.flag, flags)
	}
}

// The script is run by a real shell.
func TestCompletionBash(t *testing.T) {
	bash := needs.Command(t, "bash")
	script, _, code, _ := tool(t, "completion", "bash")
	path := filepath.Join(tempdir.New(t), "seedwalk.bash")
	err := os.WriteFile(path, []byte(script), 0o600)
	must.True(t, err == nil && code == 0, "%v %v", err, code)
	for _, c := range []struct{ words, want string }{
		{"seedwalk re", "record report replay"}, {"seedwalk record --du", "--duration"},
		{"seedwalk diff --un", "--until"}, {"seedwalk nothing --x", ""},
		{"seedwalk report seedwalk.b", "seedwalk.bash"},
	} {
		words := strings.Fields(c.words)
		cmd := exec.Command(bash, "--norc", "-c",
			`. ./seedwalk.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _seedwalk; echo "${COMPREPLY[@]}"`, "bash")
		cmd.Args = append(cmd.Args, words...)
		cmd.Dir = filepath.Dir(path)
		out, err := cmd.CombinedOutput()
		got := strings.TrimSpace(string(out))
		expect.True(t, err == nil && got == c.want, "%s: %q, want %q, %v", c.words, got, c.want, err)
	}
	for _, shell := range []string{"zsh", "fish"} {
		out, _, code, _ := tool(t, "completion", shell)
		expect.True(t, code == 0 && strings.Contains(out, "seedwalk") &&
			strings.Contains(out, "keep-suspension"), "%s: exit code %d, %q", shell, code, out)
	}
	_, errOut, code, _ := tool(t, "completion", "tcsh")
	expect.True(t, code == 2 && strings.Contains(errOut, "bash, zsh, or fish"),
		"exit code %d, %s", code, errOut)
}

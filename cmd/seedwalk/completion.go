package main

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
)

const completionHelp = `Usage: seedwalk completion bash|zsh|fish

Prints a script that completes the commands and flags of seedwalk in your shell.

Examples:
  source <(seedwalk completion bash)                                    this shell only
  seedwalk completion bash > ~/.local/share/bash-completion/completions/seedwalk
  seedwalk completion zsh > "${fpath[1]}/_seedwalk"
  seedwalk completion fish > ~/.config/fish/completions/seedwalk.fish

Exit code: 0, 2 wrong usage.
`

func runCompletion(args []string) int {
	set := flag.NewFlagSet("completion", flag.ContinueOnError)
	if code, done := cli.Parse(set, completionHelp, args); done {
		return code
	}
	write := map[string]func(io.Writer){"bash": completeBash, "zsh": completeZsh,
		"fish": completeFish}[set.Arg(0)]
	if write == nil || set.NArg() != 1 {
		return cli.Usage("completion", "name one shell: bash, zsh, or fish")
	}
	write(cli.Stdout)
	return cli.ExitOK
}

var flagPattern = regexp.MustCompile(`--[a-z][a-z-]*`)

// flagsIn returns the flags that a help text lists: lines that begin with two spaces and a flag,
// up to the description.
func flagsIn(help string) (flags []string) {
	for line := range strings.Lines(help) {
		rest, ok := strings.CutPrefix(line, "  --")
		if !ok {
			continue
		}
		list, _, _ := strings.Cut("--"+rest, "  ")
		flags = append(flags, flagPattern.FindAllString(list, -1)...)
	}
	slices.Sort(flags)
	return slices.Compact(flags)
}

func completeBash(w io.Writer) {
	fmt.Fprintf(w, `_seedwalk() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "%s" -- "$cur"))
		return
	fi
	case "$cur" in
	-*) case "${COMP_WORDS[1]}" in
`, strings.Join(names(), " "))
	for _, c := range commands {
		if flags := flagsIn(c.help); len(flags) > 0 {
			fmt.Fprintf(w, "\t\t%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")) ;;\n",
				c.name, strings.Join(flags, " "))
		}
	}
	fmt.Fprint(w, "\t\tesac ;;\n\t*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n\tesac\n}\ncomplete -o filenames -F _seedwalk seedwalk\n")
}

// completeZsh lets zsh run the script for bash.
func completeZsh(w io.Writer) {
	fmt.Fprint(w, "#compdef seedwalk\nautoload -U +X bashcompinit && bashcompinit\n")
	completeBash(w)
}

func completeFish(w io.Writer) {
	for _, c := range commands {
		fmt.Fprintf(w, "complete -c seedwalk -n __fish_use_subcommand -f -a %s -d '%s'\n", c.name,
			strings.ReplaceAll(c.line, "'", `\'`))
		for _, f := range flagsIn(c.help) {
			fmt.Fprintf(w, "complete -c seedwalk -n '__fish_seen_subcommand_from %s' -l %s\n",
				c.name, strings.TrimPrefix(f, "--"))
		}
	}
}

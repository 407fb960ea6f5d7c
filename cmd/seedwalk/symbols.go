package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/symbol"
)

// symbolList is --symbols: folders with symbol files.
type symbolList []string

func (l *symbolList) String() string { return strings.Join(*l, ",") }

func (l *symbolList) Set(s string) error {
	for _, path := range strings.Split(s, ",") {
		if strings.Contains(path, "://") {
			return fmt.Errorf("%s is no folder; seedwalk connects to no server: fetch the files first", path)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return fmt.Errorf("%q is no folder that can be read", path)
		}
		*l = append(*l, path)
	}
	return nil
}

// reportRefused reports symbol files that belong to another build.
func reportRefused(n record.Namer, say func(string)) {
	r, ok := n.(interface{ Refused() []symbol.Refusal })
	if !ok {
		return
	}
	for _, f := range r.Refused() {
		say(fmt.Sprintf("%s was not used: its build ID is %s, that of %s is %s", f.File, orNone(f.Got), f.Image, f.Want))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

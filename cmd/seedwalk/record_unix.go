//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/symbol/server"
)

// newNamer returns what names native functions, with folders of symbol files and symbol servers,
// and tables that it shares with others of the same cache; nil: it shares none.
func newNamer(symbols symbolList, c *symbol.Cache) options.Namer {
	r := symbol.NewResolver()
	r.Cache = c
	folders, urls := symbols.split()
	r.Folders = folders
	if cache, err := os.UserCacheDir(); len(urls) > 0 && err == nil {
		say := func(text string) { fmt.Fprintln(os.Stderr, "seedwalk: "+text) }
		r.Fetch = server.New(urls, filepath.Join(cache, "seedwalk", "symbols"), server.Default, say).Fetch
	}
	return r
}

// platformHelp returns the help text unchanged: it is written for Unix.
func platformHelp(s string) string { return s }

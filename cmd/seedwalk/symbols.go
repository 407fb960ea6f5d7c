package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/symbol/server"
)

// symbolList is --symbols: folders with symbol files, and addresses of symbol servers.
type symbolList []string

func (l *symbolList) String() string { return strings.Join(*l, ",") }

func (l *symbolList) Set(s string) error {
	for _, path := range strings.Split(s, ",") {
		if path == "debuginfod" {
			urls := strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
			if len(urls) == 0 {
				return errors.New("debuginfod needs the addresses of servers in DEBUGINFOD_URLS")
			}
			if err := l.Set(strings.Join(urls, ",")); err != nil {
				return err
			}
			continue
		}
		if strings.Contains(path, "://") {
			if err := server.Check(path); err != nil {
				return err
			}
			*l = append(*l, strings.TrimRight(path, "/"))
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return fmt.Errorf("%q is no folder that can be read", path)
		}
		*l = append(*l, path)
	}
	return nil
}

// split returns the folders and the addresses of servers.
func (l symbolList) split() (folders symbol.Folders, urls []string) {
	for _, s := range l {
		if strings.Contains(s, "://") {
			urls = append(urls, s)
		} else {
			folders = append(folders, s)
		}
	}
	return folders, urls
}

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

// reportRefused reports symbol files that belong to another build.
func reportRefused(n options.Namer, say func(string)) {
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

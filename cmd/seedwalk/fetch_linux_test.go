package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// seedwalk requests symbols from a server only if --symbols names the server. The server has the symbols of a
// stripped program, so a function gets its name. A file of another build is refused.
func TestSymbolsFetched(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	run := func(argv ...string) {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("SKIPPED-CHECK: %v: %s", err, out)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "a.c"),
		[]byte("int hidden(void) { return 7; }\nint main(void) { return hidden(); }\n"), 0o644))
	run("gcc", "-no-pie", "-O0", "-Wl,--build-id=0xabcdef0123456789",
		"-Wl,--section-start=.text=0x500000", "-o", "prog", "a.c")
	run("gcc", "-no-pie", "-O0", "-Wl,--build-id=0xffff", "-o", "other", "a.c")
	run("strip", "-o", "stripped", "prog")
	var requests atomic.Int64
	file := "other"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path != "/buildid/abcdef0123456789/debuginfo" {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(dir, file))
	}))
	defer srv.Close()
	t.Setenv("DEBUGINFOD_URLS", srv.URL)
	names := func(values ...string) (n int, refused int) {
		var l cli.SymbolList
		for _, v := range values {
			must.Do(t, l.Set(v))
		}
		namer := cli.NewNamer(l, nil)
		for addr := uint64(0x500000); addr < 0x500400; addr++ {
			if name, _ := namer.Name(filepath.Join(dir, "stripped"),
				"abcdef0123456789", addr); name == "hidden" {
				n++
			}
		}
		cli.ReportRefused(namer, func(string) { refused++ })
		return n, refused
	}
	if n, _ := names(); n != 0 || requests.Load() != 0 {
		t.Errorf("without --symbols: %d addresses named, %d requests", n, requests.Load())
	}
	if n, _ := names(dir); n != 0 || requests.Load() != 0 {
		t.Errorf("with a folder: %d addresses named, %d requests", n, requests.Load())
	}
	if n, refused := names("debuginfod"); n != 0 || refused != 1 || requests.Load() == 0 {
		t.Errorf("another build: %d addresses named, %d refused, %d requests", n, refused, requests.Load())
	}
	file = "prog"
	n, refused := names(srv.URL)
	expect.True(t, n != 0 && refused == 0, "by address: %d addresses named, %d refused", n, refused)
	before := requests.Load()
	if n, _ := names(srv.URL); n == 0 || requests.Load() != before {
		t.Errorf("from the cache: %d addresses named, %d requests", n, requests.Load()-before)
	}
}

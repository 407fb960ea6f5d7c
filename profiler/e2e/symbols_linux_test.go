package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// mostWithSymbols is the largest share, in percent, of CPU self time without a name if symbols are available:
// in rows of the whole program, and in frames of the library.
const mostWithSymbols = 1.0

// A library without symbols, as the runtime's is. One recording of it is symbolized later by a folder, by a
// debuginfod server, and by a symbol server; each result equals that of the library with its own symbols.
func TestSymbolsLater(t *testing.T) {
	needs.Command(t, "gcc")
	exe := compiled(t, "profiler/testdata/Shop.cs")
	dir := tempdir.New(t)
	const id = "5eed0000000000000000000000000000000000a1"
	library, full := filepath.Join(filepath.Dir(exe), "libSystem.Shop.Native.so"), filepath.Join(dir, "full.so")
	needs.Build(t, "gcc", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--build-id=0x"+id, "-o", full, filepath.Join(root, "profiler", "testdata", "shop.c"))
	needs.Build(t, "strip", "-o", library, full)
	file := filepath.Join(dir, "shop.swrec")
	if r := run(t, 2*time.Minute, nil, tool(t), "record", "--quiet", "--rate", "499", "--output", file, "--", need(t, "out", "bin", "swhost"), runtime9(t), exe, "6000"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	put := func(name string) {
		at := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(at), 0o755)
		needs.Build(t, "objcopy", "--only-keep-debug", full, at)
	}
	put("folder/.build-id/5e/" + id[2:] + ".debug")
	put("debuginfod/buildid/" + id + "/debuginfo")
	put("store/_.debug/elf-buildid-sym-" + id + "/_.debug")
	serve := func(folder string) string {
		srv := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, folder))))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	report := func(name string, args ...string) (folded string, rows, frames float64) {
		at := filepath.Join(dir, name)
		argv := append([]string{tool(t), "report", "--metric", "cpu", "--output", at + ".folded," + at + ".json"}, args...)
		if r := run(t, time.Minute, []string{"XDG_CACHE_HOME=" + at + ".cache"}, append(argv, file)...); r.code != 0 {
			t.Fatal(r.stderr)
		}
		rows, frames = unnamedRows(t, at+".folded", false), unnamedLeaves(t, at+".json", filepath.Base(library))
		fmt.Printf("%-10s CPU self time without a name: %5.2f %% of rows, %6.2f %% of the library's frames\n", name, rows, frames)
		return readFile(t, at+".folded"), rows, frames
	}
	if _, _, frames := report("none"); frames < 90 {
		t.Errorf("%.2f %% without symbols", frames)
	}
	results := map[string]string{}
	for name, place := range map[string]string{"folder": filepath.Join(dir, "folder"), "debuginfod": serve("debuginfod"), "store": serve("store")} {
		folded, rows, frames := report(name, "--symbols", place)
		if rows > mostWithSymbols || frames > mostWithSymbols {
			t.Errorf("%s: %.2f %% of rows, %.2f %% of the library's frames", name, rows, frames)
		}
		results[name] = folded
	}
	if err := os.Rename(full, library); err != nil {
		t.Fatal(err)
	}
	want, _, _ := report("own")
	for _, name := range []string{"shop_open", "shop_tax", "shop_cart", "shop_price", "shop_restock"} {
		if !strings.Contains(want, name) {
			t.Errorf("no %s in the library's own names", name)
		}
	}
	for name, got := range results {
		if got != want {
			t.Errorf("%s: not what the library's own symbols give", name)
		}
	}
}

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/recording"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pdbfile"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// A recording made on Windows gets names and lines of native code on this machine: from a folder and from a
// symbol server, by the ID in the recording. Without --symbols no server is asked.
func TestPDBReport(t *testing.T) {
	dir := tempdir.New(t)
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData"} { // Linux, Windows
		t.Setenv(name, filepath.Join(dir, "cache"))
	}
	const id = "AABBCCDDEEFF112201020304050607082A"
	db := pdbfile.File{
		GUID: [16]byte{0xdd, 0xcc, 0xbb, 0xaa, 0xff, 0xee, 0x22, 0x11, 1, 2, 3, 4, 5, 6, 7, 8}, Age: 0x2a,
		Sections: []pdbfile.Section{{RVA: 0x1000, Size: 0x1000, Flags: 0x60000020}},
		Modules: []pdbfile.Module{{
			Procedures: []pdbfile.Name{{Segment: 1, Offset: 0x10, Size: 0x40, Text: "shop::price"}},
			Lines: []pdbfile.Line{{Segment: 1, Offset: 0x10, Size: 0x40, File: 1,
				Entries: [][2]uint32{{0, 7}, {8, 9}}}},
		}},
		Names: []byte("\x00C:\\src\\shop.cc\x00"),
	}
	store := filepath.Join(dir, "store", "shop.pdb", id, "shop.pdb")
	os.MkdirAll(filepath.Dir(store), 0o755)
	must.Do(t, os.WriteFile(store, db.Bytes(), 0o644))
	path := filepath.Join(dir, "windows.swrec")
	const base = 0x7ff800000000
	writeRecording(t, path, &wire.Module{ID: 1, Start: base, End: base + 0x9000, Bias: base,
		Path: `C:\app\shop.dll`, BuildID: id}, base+0x1019)
	requests := 0
	files := http.FileServer(http.Dir(filepath.Join(dir, "store")))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		requests++
		files.ServeHTTP(w, r)
	}))
	defer srv.Close()
	for _, c := range []struct {
		name, symbols string
		found         bool
		requests      int
	}{
		{"none", "", false, 0}, {"folder", filepath.Join(dir, "store"), true, 0},
		{"server", srv.URL, true, 1}, {"cache", srv.URL, true, 1},
	} {
		args := []string{"report", "--format", "json", path}
		if c.symbols != "" {
			args = append(args, "--symbols", c.symbols)
		}
		out, errOut, code, _ := tool(t, args...)
		expect.True(t, code == 0 && strings.Contains(out, `"shop::price"`) == c.found &&
			strings.Contains(out, `C:\\src\\shop.cc`) == c.found && requests == c.requests,
			"%s: exit code %d, %d requests\n%s\n%s", c.name, code, requests, errOut, out)
	}
}

// writeRecording writes a recording of one sample of one native frame.
func writeRecording(t *testing.T, path string, m *wire.Module, ip uint64) {
	t.Helper()
	f := must.Get(os.Create(path))(t)
	defer f.Close()
	w := recording.NewWriter(f)
	w.Process(1, collect.NewProcess(7, "shop"))
	for _, message := range []wire.Message{
		&wire.Hello{PID: 7, Arch: "amd64", StartUnixNano: 1e9, RateMilliHz: 99000}, m,
		&wire.Thread{TID: 1, Name: "main"},
		&wire.Sample{TID: 1, TimeUnixNano: 1e9 + 1e7, WallNanos: 1e7, CPUNanos: 1e7,
			Frames: []wire.Frame{{Kind: unwind.KindNative, Module: 1, IP: ip}}},
		&wire.Bye{Reason: "ended"},
	} {
		w.Message(1, message)
	}
	w.Info(&collect.Info{RateHz: 99, Start: time.Unix(1, 0)})
	must.Do(t, w.End())
}

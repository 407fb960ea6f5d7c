package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const id = "abcdef0123456789"

var quick = Limits{Answer: 300 * time.Millisecond, Quiet: 300 * time.Millisecond,
	Fetch: 5 * time.Second, Total: time.Minute,
	Report: time.Millisecond, Size: 1 << 20, Cache: 1 << 21, Age: time.Hour}

// lines collects the messages of Servers.
type lines []string

func (l *lines) say(text string) { *l = append(*l, text) }

func (l lines) has(part string) bool { return strings.Contains(strings.Join(l, "\n"), part) }

// good accepts files with the right content.
func good(file, _ string) bool {
	b, err := os.ReadFile(file)
	return err == nil && strings.HasPrefix(string(b), "good")
}

// left returns the files in a folder.
func left(t *testing.T, folder string) (out []string) {
	filepath.WalkDir(folder, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, p)
		}
		return err
	})
	return out
}

// Answers of servers, and the results of fetches.
func TestFetch(t *testing.T) {
	elsewhere := atomic.Int64{}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		elsewhere.Add(1)
		io.WriteString(w, "good")
	}))
	defer other.Close()
	release := make(chan struct{})
	defer close(release)
	for _, c := range []struct {
		name, key string
		answer    http.HandlerFunc
		found     bool
		said      string
		requests  int64 // in both fetches
	}{
		{"debuginfod", "/buildid/" + id + "/debuginfo",
			func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "good") }, true, "", 1},
		{"symbol store", "/_.debug/elf-buildid-sym-" + id + "/_.debug",
			func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "good") }, true, "", 2},
		{"nothing", "", nil, false, "", 4},
		{"another build", "/buildid/" + id + "/debuginfo",
			func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "other") }, false, "", 4},
		{"never answers", "/buildid/" + id + "/debuginfo", func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}, false, "timeout awaiting response", 1},
		{"stops in the middle", "/buildid/" + id + "/debuginfo",
			func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "good")
				w.(http.Flusher).Flush()
				select {
				case <-release:
				case <-r.Context().Done():
				}
			}, false, "after 4 bytes", 1},
		{"ends too early", "/buildid/" + id + "/debuginfo", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "good")
		}, false, "after 4 bytes", 1},
		{"says 4 GiB", "/buildid/" + id + "/debuginfo", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(4<<30))
			io.WriteString(w, "good")
		}, false, "more than 1 MB", 1},
		{"sends without end", "/buildid/" + id + "/debuginfo", func(w http.ResponseWriter, r *http.Request) {
			for b := make([]byte, 1<<16); r.Context().Err() == nil; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}, false, "more than 1 MB", 1},
		{"fails", "/buildid/" + id + "/debuginfo",
			func(w http.ResponseWriter, r *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) },
			false, "503", 1},
		{"sends elsewhere", "/buildid/" + id + "/debuginfo",
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"/x",
					http.StatusFound)
			}, false, "refused", 1},
		{"sends in circles", "/buildid/" + id + "/debuginfo",
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path,
					http.StatusFound)
			}, false, "refused", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.URL.Path != c.key {
					http.NotFound(w, r)
					return
				}
				c.answer(w, r)
			}))
			defer srv.Close()
			defer srv.CloseClientConnections()
			var said lines
			folder := t.TempDir()
			s := New([]string{srv.URL}, folder, quick, said.say)
			for range 2 {
				began := time.Now()
				file := s.Fetch("/lib/x.so", id, good)
				if (file != "") != c.found || file != "" && !good(file, "") {
					t.Fatalf("file %q", file)
				}
				expect.True(t, time.Since(began) <= 10*time.Second, "it took %v", time.Since(began))
			}
			expect.True(t, requests.Load() == c.requests && elsewhere.Load() == 0,
				"%d requests, want %d; %d elsewhere", requests.Load(), c.requests, elsewhere.Load())
			if c.said == "" && len(said) > 0 || !said.has(c.said) {
				t.Errorf("said %q", said)
			}
			files := left(t, folder)
			expect.True(t, c.found == (len(files) == 1) && len(files) <= 1, "left %v", files)
		})
	}
}

// PDBs are asked for by name, in upper and in lower case.
func TestFetchPDB(t *testing.T) {
	const pdb = "AABBCCDDEEFF112201020304050607082A"
	for _, c := range []struct {
		name, key string
		requests  int64 // of two builds
	}{
		{"upper case", "/my%20shop.pdb/" + pdb + "/my%20shop.pdb", 2},
		{"lower case", "/my%20shop.pdb/" + strings.ToLower(pdb) + "/my%20shop.pdb", 3},
	} {
		var requests atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if r.URL.EscapedPath() != c.key &&
				r.URL.EscapedPath() != strings.ReplaceAll(strings.ReplaceAll(c.key, "2A/", "2B/"),
					"2a/", "2b/") {
				http.NotFound(w, r)
				return
			}
			io.WriteString(w, "good")
		}))
		var said lines
		s := New([]string{srv.URL}, t.TempDir(), quick, said.say)
		for _, id := range []string{pdb, pdb, pdb[:len(pdb)-1] + "B"} {
			file := s.Fetch("my shop.pdb", id, good)
			expect.True(t, good(file, ""), "%s: file %q", c.name, file)
		}
		expect.True(t, requests.Load() == c.requests && len(said) == 0,
			"%s: %d requests, want %d; said %q", c.name, requests.Load(), c.requests, said)
		srv.Close()
	}
}

// A long fetch reports progress, and the total time of all fetches is bounded.
func TestFetchSlow(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, piece := range []string{"good", "more", "end"} {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}))
	defer srv.Close()
	said := lines{}
	s := New([]string{srv.URL}, t.TempDir(), quick, said.say)
	expect.True(t, s.Fetch("/lib/x.so", id, good) != "" && said.has(`fetching the symbols of "x.so"`),
		"said %q", said)
	s.limits.Total = time.Millisecond
	expect.True(t, s.Fetch("/lib/y.so", "beef", good) == "" && said.has("no further symbols"),
		"said %q", said)
}

// The cache stays within its bounds of size and age, and removes nothing else.
func TestCache(t *testing.T) {
	folder := t.TempDir()
	put := func(name string, size int, age time.Duration) string {
		file := filepath.Join(folder, name)
		os.MkdirAll(filepath.Dir(file), 0o700)
		must.Do(t, os.WriteFile(file, make([]byte, size), 0o600))
		os.Chtimes(file, time.Now().Add(-age), time.Now().Add(-age))
		return file
	}
	const mb = 1 << 20
	want := map[string]bool{
		put("aa01/debuginfo", mb, 2*time.Hour):    false, // too old
		put("aa02/debuginfo", mb, 30*time.Minute): false, // the oldest of too many
		put("aa03/debuginfo", mb, 20*time.Minute): true, put("aa04/debuginfo", mb, time.Minute): true,
		put("aa05/part-1", 1, 2*time.Hour): false, put("aa04/notes", 4*mb, 99*time.Hour): true,
		put("zz/debuginfo", mb, 99*time.Hour): true,
	}
	New(nil, folder, quick, nil).prune()
	for file, keep := range want {
		_, err := os.Stat(file)
		expect.True(t, (err == nil) == keep, "%s: kept %v, want %v", file, err == nil, keep)
	}
	_, err := os.Stat(filepath.Join(folder, "aa01"))
	expect.True(t, err != nil, "an empty folder is left")
}

func TestCheck(t *testing.T) {
	for address, want := range map[string]bool{
		"https://example.com": true, "http://127.0.0.1:8002/x": true,
		"ftp://example.com": false, "https://": false,
		"://x": false, "https://example.com/?a=b": false, "file:///etc": false,
		"https://example.com/\x00": false,
	} {
		err := Check(address)
		expect.True(t, (err == nil) == want, "%q: %v", address, err)
	}
}

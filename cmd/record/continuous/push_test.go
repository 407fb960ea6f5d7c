package continuous

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// backend is a server that gives the answers of its script, then accepts everything.
type backend struct {
	mu     sync.Mutex
	script []func(w http.ResponseWriter, r *http.Request)
	got    []string // names of applications, in order
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	var next func(http.ResponseWriter, *http.Request)
	if len(b.script) > 0 {
		next, b.script = b.script[0], b.script[1:]
	}
	b.mu.Unlock()
	if next != nil {
		next(w, r)
		return
	}
	f, _, err := r.FormFile("profile")
	if err != nil || r.URL.Path != "/ingest" || r.FormValue("format") != "pprof" ||
		r.FormValue("from") >= r.FormValue("until") {
		http.Error(w, "bad", http.StatusBadRequest)
		return
	}
	data, _ := io.ReadAll(f)
	name, _, _ := strings.Cut(r.FormValue("name"), "{")
	b.mu.Lock()
	b.got = append(b.got, name+" "+string(data))
	b.mu.Unlock()
}

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, strings.Repeat("x", 1<<20)) // more than anyone reads
	}
}

// hangUp closes the connection in the middle of the answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	c, _, _ := w.(http.Hijacker).Hijack()
	fmt.Fprint(c, "HTTP/1.1 20")
	c.Close()
}

type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

// pushing returns a pusher with n files in its spool.
func pushing(t *testing.T, address string, n int) (*pusher, *said) {
	count, said := &Counters{}, &said{}
	spool := &folder{dir: tempdir.New(t), bound: 1 << 20, dropped: &count.SpoolDropped}
	p := must.Get(newPusher(&Config{Push: address, Say: said.say}, spool, count))(t)
	p.first, p.most = time.Millisecond, 10*time.Millisecond
	spool.suffix = p.suffix()
	for i := range n {
		at := time.UnixMilli(1_700_000_000_000 + int64(i))
		put(t, spool, spooled{at, at, 7, 19.0 / 7, fmt.Sprint("app", i)}.file(spool.suffix),
			fmt.Sprint("profile", i))
	}
	return p, said
}

func put(t *testing.T, f *folder, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

// drained runs a pusher until its spool is empty.
func drained(t *testing.T, p *pusher) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { p.run(stop); close(done) }()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if names, _ := p.spool.files(); len(names) == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("still in the spool: %v", names)
		}
	}
	close(stop)
	<-done
}

// Every profile arrives once, in order, whatever the backend answers at first.
func TestPushRetries(t *testing.T) {
	for name, bad := range map[string]func(http.ResponseWriter, *http.Request){
		"500": status(500), "503 later": status(503, "Retry-After", "3600"), "429": status(429),
		"401": status(401), "404": status(404),
		"redirect": status(302, "Location", "http://localhost:1/"), "hangs up": hangUp,
	} {
		t.Run(name, func(t *testing.T) {
			b := &backend{script: []func(http.ResponseWriter, *http.Request){bad, bad, bad}}
			srv := httptest.NewServer(b)
			defer srv.Close()
			p, said := pushing(t, srv.URL, 3)
			drained(t, p)
			want := []string{"app0 profile0", "app1 profile1", "app2 profile2"}
			expect.True(t, slices.Equal(b.got, want), "got %v", b.got)
			expect.True(t, p.count.Pushed.Load() == 3 && p.count.PushErrors.Load() == 3 &&
				p.count.PushRejected.Load() == 0,
				"pushed %d, errors %d, rejected %d", p.count.Pushed.Load(), p.count.PushErrors.Load(),
				p.count.PushRejected.Load())
			expect.True(t, len(said.lines) == 2 && strings.Contains(said.lines[1], "again"),
				"said %q", said.lines)
		})
	}
}

// The user reads each new reason of failure once, and that the backend accepts profiles again.
func TestPushReasons(t *testing.T) {
	b := &backend{script: []func(http.ResponseWriter, *http.Request){status(503),
		status(503), status(404), status(404)}}
	srv := httptest.NewServer(b)
	defer srv.Close()
	p, said := pushing(t, srv.URL, 1)
	drained(t, p)
	expect.True(t, len(said.lines) == 3 && strings.Contains(said.lines[0], "503") &&
		strings.Contains(said.lines[1], "404"), "said %q", said.lines)
	got := ownPort.ReplaceAllString("read tcp 127.0.0.1:5->127.0.0.1:4040: reset", "->")
	expect.True(t, got == "read tcp 127.0.0.1->127.0.0.1:4040: reset", "the reason is %q", got)
}

// A profile that the backend rejects is dropped and counted, and does not delay the rest.
func TestPushRejected(t *testing.T) {
	b := &backend{script: []func(http.ResponseWriter, *http.Request){status(400)}}
	srv := httptest.NewServer(b)
	defer srv.Close()
	p, said := pushing(t, srv.URL, 2)
	put(t, p.spool, "1700000000000-7-strange.pb.gz", "no profile of ours")
	drained(t, p)
	expect.True(t, len(b.got) == 1 && p.count.PushRejected.Load() == 2 && p.count.Pushed.Load() == 1 &&
		len(said.lines) == 2, "got %v, rejected %d, said %q", b.got, p.count.PushRejected.Load(), said.lines)
}

// A backend that never answers costs one connection, and stopping does not wait for long.
func TestPushSlow(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	p, _ := pushing(t, "http://"+l.Addr().String(), 3)
	p.client.Timeout = 20 * time.Millisecond
	expect.True(t, p.drain(make(chan struct{})) != nil, "a backend that never answers has taken a profile")
	if names, _ := p.spool.files(); len(names) != 3 || p.count.PushErrors.Load() != 1 {
		t.Errorf("%d files left after %d errors", len(names), p.count.PushErrors.Load())
	}
}

// The spool keeps the newest profiles within its bound, and counts the others.
func TestSpoolBound(t *testing.T) {
	p, _ := pushing(t, "http://localhost:1", 10) // 8 bytes each
	p.spool.bound = 8 * 3
	p.spool.trim()
	names, size := p.spool.files()
	must.True(t, len(names) == 3 && size == 24 && p.count.SpoolDropped.Load() == 7,
		"%d files of %d bytes left, %d dropped", len(names), size, p.count.SpoolDropped.Load())
	s, ok := parseSpooled(names[0])
	expect.True(t, ok && s.Name == "app7" && s.PID == 7, "the oldest that is left is %+v", s)
}

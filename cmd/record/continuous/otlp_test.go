package continuous

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestPushAddress(t *testing.T) {
	for address, want := range map[string]string{
		"http://h:4040": "http://h:4040", "otlp+http://h:4318/x": "http://h:4318/x",
		"otlp+grpcs://h:4317": "https://h:4317", "otlp+grpc://h:4317/": "http://h:4317/",
		"otlp+grpc://h:4317/x": "", "otlp://h:1": "", "h:1": "", "grpc://h": "",
		"otlp+http://": "", "http://h/?a=b": "", "": "",
	} {
		u, _, err := target(address)
		if (err == nil) != (want != "") || err == nil && u.String() != want || err != CheckPush(address) {
			t.Errorf("%q: %v, %v, want %q", address, u, err, want)
		}
	}
}

// collector is a server for OpenTelemetry's protocol, by HTTP or gRPC. It first gives the answers
// of its script, then accepts everything.
type collector struct {
	mu     sync.Mutex
	script []func(w http.ResponseWriter)
	got    []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Header.Get("Content-Type") == "application/grpc+proto" {
		if r.ProtoMajor != 2 || r.URL.Path != "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export" || r.Header.Get("Grpc-Encoding") != "gzip" ||
			r.Header.Get("Te") != "trailers" || len(body) < 5 || body[0] != 1 ||
			int(binary.BigEndian.Uint32(body[1:])) != len(body)-5 {
			c.got = append(c.got, fmt.Sprintf("bad %s %s %v", r.Proto, r.URL, r.Header))
			return
		}
		body = body[5:]
	} else if r.URL.Path != "/v1development/profiles" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" ||
		r.Header.Get("Content-Encoding") != "gzip" {
		c.got = append(c.got, fmt.Sprintf("bad %s %v", r.URL, r.Header))
		return
	}
	if len(c.script) > 0 {
		answer := c.script[0]
		c.script = c.script[1:]
		answer(w)
		return
	}
	c.got = append(c.got, string(body))
	grpc("0", "", "")(w)
}

// grpc ends an answer with a status.
func grpc(status, message, details string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Write(nil)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", message)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status-Details-Bin", details)
	}
}

// partial answers that two profiles are refused.
func partial(prefix string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		io.WriteString(w, prefix+"\x0a\x08\x08\x02\x12\x04full")
		grpc("0", "", "")(w)
	}
}

// zipped answers with a compressed message, as servers do if the request was compressed.
func zipped(encoding, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, message)
		z.Close()
		w.Header().Set("Grpc-Encoding", encoding)
		w.Write(binary.BigEndian.AppendUint32([]byte{1}, uint32(b.Len())))
		w.Write(b.Bytes())
		grpc("0", "", "")(w)
	}
}

func code(n int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(n) }
}

// Each profile arrives once, in order, whatever the collector answers at first. A profile that it
// rejects is dropped and counted, and does not delay the rest.
func TestPushCollector(t *testing.T) {
	for name, c := range map[string]struct {
		scheme           string
		first            func(http.ResponseWriter)
		rejected, errors int64
	}{
		"http":         {"otlp+http", nil, 0, 0},
		"http 503":     {"otlp+http", code(503), 0, 1},
		"http 404":     {"otlp+http", code(404), 0, 1},
		"http 400":     {"otlp+http", code(400), 1, 0},
		"http partial": {"otlp+http", partial(""), 1, 0},
		"http garbage": {"otlp+http",
			func(w http.ResponseWriter) { io.WriteString(w, "\x0a\xff\xff\xff\xff\x0f") }, 0, 1},
		"http page": {"otlp+http",
			func(w http.ResponseWriter) { io.WriteString(w, "<html>please log in</html>") }, 0, 1},
		"http cut": {"otlp+http",
			func(w http.ResponseWriter) {
				w.Header().Set("Content-Length",
					"9")
				io.WriteString(w, "\x0a\x00")
			}, 0, 1},
		"http new field": {"otlp+http",
			func(w http.ResponseWriter) { io.WriteString(w, "\x4d\x01\x02\x03\x04") }, 0, 0},
		"grpc":                {"otlp+grpc", nil, 0, 0},
		"grpc unavailable":    {"otlp+grpc", grpc("14", "down", ""), 0, 1},
		"grpc unimplemented":  {"otlp+grpc", grpc("12", "no%20gate", ""), 0, 1},
		"grpc invalid":        {"otlp+grpc", grpc("3", "bad", ""), 1, 0},
		"grpc too large":      {"otlp+grpc", grpc("8", "larger than max", ""), 1, 0},
		"grpc later":          {"otlp+grpc", grpc("8", "busy", "CAgSBGJ1c3k"), 0, 1},
		"grpc partial":        {"otlp+grpc", partial("\x00\x00\x00\x00\x0a"), 1, 0},
		"grpc compressed":     {"otlp+grpc", zipped("gzip", "\x0a\x08\x08\x02\x12\x04full"), 1, 0},
		"grpc compressed, ok": {"otlp+grpc", zipped("gzip", ""), 0, 0},
		"grpc other encoding": {"otlp+grpc", zipped("snappy", ""), 0, 1},
		"grpc garbage":        {"otlp+grpc", partial("\x00\x00\x00\x00\x0b"), 0, 1},
		"grpc 502":            {"otlp+grpc", code(502), 0, 1},
		"grpc without status": {"otlp+grpc", func(http.ResponseWriter) {}, 0, 1},
		"grpc strange status": {"otlp+grpc", grpc("x", "%zz", ""), 0, 1},
		"grpc status at front": {"otlp+grpc",
			func(w http.ResponseWriter) { w.Header().Set("Grpc-Status", "14") }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &collector{}
			if c.first != nil {
				b.script = append(b.script, c.first)
			}
			srv := httptest.NewUnstartedServer(b)
			srv.Config.Protocols = new(http.Protocols)
			srv.Config.Protocols.SetHTTP1(true)
			srv.Config.Protocols.SetUnencryptedHTTP2(true)
			srv.Start()
			defer srv.Close()
			p, said := pushing(t, c.scheme+strings.TrimPrefix(srv.URL, "http"), 3)
			drained(t, p)
			want := []string{"profile0", "profile1", "profile2"}
			if c.rejected > 0 || slices.Contains([]string{"http new field", "grpc compressed, ok"}, name) {
				// the script takes no profile
				want = want[1:]
			}
			expect.Slices(t, b.got, want)
			expect.True(t, p.count.PushErrors.Load() == c.errors &&
				p.count.PushRejected.Load() == c.rejected && p.count.Pushed.Load() == 3-c.rejected,
				"%d errors, %d rejected, %d pushed: %q", p.count.PushErrors.Load(),
				p.count.PushRejected.Load(), p.count.Pushed.Load(), said.lines)
		})
	}
}

func FuzzPartialSuccess(f *testing.F) {
	f.Add([]byte("\x0a\x08\x08\x02\x12\x04full"))
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) { partialSuccess(b) })
}

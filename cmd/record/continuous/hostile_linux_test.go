package continuous

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A process chooses its name and its environment. File names with that name stay within their folder,
// can be parsed, and never look like those of another process.
func TestHostileNames(t *testing.T) {
	for name, argv := range map[string][]string{
		"path":      {"../../../etc/passwd"},
		"lines":     {"a\nfail: b\r\x1b[31m"},
		"markup":    {"<script>alert(1)</script>"},
		"bytes":     {"\xff\xfe\xc0\x80"},
		"empty":     {""},
		"dots":      {"..."},
		"assembly":  {"dotnet", "/app/..dll"},
		"long":      {strings.Repeat("x", 100<<10)},
		"other PID": {"1-7-x"},
		"spool":     {"x.otlp.gz"},
		"label":     {"a{pid=1,service=b}"},
	} {
		cmd := &exec.Cmd{Path: "/bin/sh", Args: append(argv, "-c", "read x"),
			Env: []string{"OTEL_RESOURCE_ATTRIBUTES=a=" + strings.Repeat("%", 64<<10),
				"OTEL_SERVICE_NAME=" + strings.Repeat("y", 64<<10)}}
		in, err := cmd.StdinPipe()
		must.True(t, err == nil && cmd.Start() == nil, "%v %v", name, err)
		p := process{pid: cmd.Process.Pid, name: nameOf(cmd.Process.Pid)}
		expect.True(t, regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`).MatchString(p.name),
			"%s: named %q", name, p.name)
		at := time.UnixMilli(1_700_000_000_000)
		want := spooled{at, at, p.pid, 19, p.name}
		got, ok := parseSpooled(want.file(otlpSuffix))
		expect.True(t, ok && got == want, "%s: %+v is read as %+v", name, want, got)
		for key, value := range resource(p) {
			expect.True(t, len(key) <= maxValue && len(value) <= maxValue,
				"%s: %.20s has %d bytes", name, key, len(value))
		}
		a, _ := testAgent(t, nil)
		put(t, a.store, fmt.Sprintf("%d-%d-%s.swrec", at.UnixMilli(), p.pid, p.name), "x")
		expect.True(t, len(a.recordings(p.pid)) == 1 && len(a.recordings(7)) == 0,
			"%s: its recordings are %q, those of process 7 %q", name, a.recordings(p.pid), a.recordings(7))
		in.Close()
		cmd.Wait()
	}
}

// A folder may have any name.
func TestHostileFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b*\\?")
	a := must.Get(New(Config{Folder: dir, FolderBytes: 100, SpoolBytes: 100,
		Push: "http://localhost:1", CPU: 1}))(t)
	put(t, a.store, "1700000000000-7-x.swrec.partial", "x")
	put(t, a.spool, "1700000000000-7-x.part", "x")
	expect.Equal(t, len(a.recordings(7)), 1, "recordings")
	a.recover()
	names, _ := a.store.files()
	expect.True(t, len(names) == 1 && len(a.spool.ending("")) == 0 && a.count.SpoolDropped.Load() == 1,
		"%v, %v left", names, a.spool.ending(""))
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, folder := range []string{file, "/proc/1/x", "a\x00b"} {
		_, err := New(Config{Folder: folder, CPU: 1})
		expect.True(t, err != nil, "%q is a folder", folder)
	}
}

// A collector that answers garbage, endlessly, or not at all costs no profile, and bounded memory.
func TestHostileCollectors(t *testing.T) {
	for name, answer := range map[string]func(c net.Conn){
		"nothing":  func(c net.Conn) { io.Copy(io.Discard, c) },
		"hangs up": func(net.Conn) {},
		"garbage":  func(c net.Conn) { c.Write([]byte("\x00\xff\x13\x37 garbage\r\n\r\n")) },
		"endless header": func(c net.Conn) {
			endless(c, "HTTP/1.1 200 OK\r\n",
				"X: "+strings.Repeat("y", 1000)+"\r\n")
		},
		"endless answer": func(c net.Conn) {
			endless(c,
				"HTTP/1.1 500 no\r\n\r\n", strings.Repeat("y", 1000))
		},
		"drips":            func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n") },
		"a frame of 2^24":  func(c net.Conn) { c.Write([]byte("\xff\xff\xff\x04\x00\x00\x00\x00\x00")); io.Copy(io.Discard, c) },
		"another protocol": func(c net.Conn) { c.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n")) },
	} {
		for _, scheme := range []string{"http://", "otlp+http://", "otlp+grpc://"} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must.Do(t, err)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() { answer(c); c.Close() }()
				}
			}()
			p, said := pushing(t, scheme+l.Addr().String(), 3)
			p.client.Timeout = 500 * time.Millisecond
			err = p.drain(make(chan struct{}))
			l.Close()
			names, _ := p.spool.files()
			expect.True(t, err != nil && len(names) == 3 && p.count.PushErrors.Load() == 1 &&
				p.count.PushRejected.Load()+p.count.Pushed.Load() == 0 && len(said.lines) == 1 &&
				len(said.lines[0]) <= 1000,
				"%s%s: %v; %d profiles left, said %.300q", scheme, name, err, len(names), said.lines)
		}
	}
}

// endless writes until the connection fails.
func endless(c net.Conn, first, again string) {
	for _, err := io.WriteString(c, first); err == nil; _, err = io.WriteString(c, again) {
	}
}

// drip writes a byte every 20 ms.
func drip(c net.Conn, text string) {
	for i := range text {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A full disk costs the intervals that do not fit, with the reason, and nothing else. Once there is
// room again, recording continues.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("seedwalk", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIPPED-CHECK: no small file system can be mounted: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	said := &said{}
	a := must.Get(New(Config{Folder: dir, FolderBytes: 1 << 20, SpoolBytes: 1 << 20,
		Push: "http://localhost:1", CPU: 1, Say: said.say, Interval: time.Second,
		Record: func(i Interval) (int64, error) {
			return 1, errors.Join(os.WriteFile(i.Recording, make([]byte, 10<<10), 0o600),
				os.WriteFile(i.Profile, make([]byte, 10<<10), 0o600))
		}}))(t)
	record := func(k int64) error {
		err := a.record(self(t), 19, time.UnixMilli(k*1000), time.UnixMilli(k*1000+1000))
		if err != nil {
			a.fail(self(t), err)
		}
		return err
	}
	must.True(t, record(1) == nil && record(2) == nil, "no room for two intervals")
	for k := range int64(3) {
		must.True(t, record(3+k) != nil, "more than fits is written")
	}
	if waits, _ := a.spool.files(); len(waits) != 2 || len(a.spool.ending(partSuffix)) != 0 {
		t.Errorf("%v wait, %v left", waits, a.spool.ending(partSuffix))
	}
	failed := a.failed()
	expect.True(t, failed[ReasonWrite] == 3 && len(failed) == 1 &&
		strings.Contains(said.lines[0], "no space left"), "failures %v, said %q", failed, said.lines)
	for _, path := range append(a.store.ending(""), a.spool.ending(otlpSuffix)...) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			os.Remove(path)
		}
	}
	expect.Equal(t, record(6), nil, "with room again")
}

package diagnostics

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var runtimeProvider = Provider{Name: "Mi", Keywords: 0x40000004000, Level: 5}

// TestCollectBytes: the exact bytes of the commands. The format is always 1: any other value crashes a .NET 9
// process.
func TestCollectBytes(t *testing.T) {
	const text = "03000000" + "4d0069000000"
	for i, want := range []string{
		"00000000" + "00010000" + "01000000" + "3800000000000000" + "01" + "01000000" + "0040000000040000" +
			"05000000" + text + "00000000" + "01" + "02000000" + "5100000052000000",
		"00010000" + "01000000" + "3800000000000000" + "01" + "01000000" + "0040000000040000" + "05000000" +
			text + "00000000",
		"00010000" + "01000000" + "01" + "01000000" + "0040000000040000" + "05000000" + text + "00000000",
	} {
		p := runtimeProvider
		p.Events = []uint32{81, 82}
		got := collectors[i].encode(&Config{Rundown: 0x38, Providers: []Provider{p}})
		if hex.EncodeToString(got) != want {
			t.Errorf("version %d:\n%x, want\n%s", collectors[i].version, got, want)
		}
	}
	ids := []uint8{collectors[0].id, collectors[1].id, collectors[2].id}
	expect.True(t, slices.Equal(ids, []uint8{6, 5, 3}), "ids on the wire: %v", ids)
}

// TestFormatIsOne checks the format field of every command.
func TestFormatIsOne(t *testing.T) {
	at := map[int]int{5: 8, 4: 4, 2: 4}
	for _, cfg := range []Config{{}, {BufferMB: 2, Rundown: 2, NoStacks: true},
		{BufferMB: 3, Providers: []Provider{runtimeProvider, runtimeProvider}}} {
		for _, f := range collectors {
			expect.Equal(t, binary.LittleEndian.Uint32(f.encode(&cfg)[at[f.version]:]), 1,
				"version %d asks for format", f.version)
		}
	}
}

func TestMessageBytes(t *testing.T) {
	m, err := message(3, 1, encodeAttach(&Profiler{CLSID: [16]byte{1, 2, 15: 16}, Path: "/a",
		Data: []byte{7, 8}, Timeout: time.Second}))
	const want = "444f544e45545f4950435f563100" + "3800" + "0301" + "0000" + "e8030000" +
		"01020000000000000000000000000010" + "03000000" + "2f0061000000" + "02000000" + "0708"
	expect.True(t, hex.EncodeToString(m) == want && err == nil, "%x, %v", m, err)
	_, err = message(2, 2, make(payload, 70000))
	expect.True(t, err != nil, "a command longer than its size can say")
}

// fakeRuntime answers commands and records them in seen.
type fakeRuntime struct {
	answer func(set, id uint8, body []byte) []byte
	after  []byte // sent after an answer
	seen   [][2]uint8
}

func (f *fakeRuntime) dial() (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	go f.serve(theirs)
	return ours, nil
}

func (f *fakeRuntime) serve(conn net.Conn) {
	defer conn.Close()
	var head [20]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return
	}
	body := make([]byte, int(binary.LittleEndian.Uint16(head[14:]))-20)
	io.ReadFull(conn, body)
	f.seen = append(f.seen, [2]uint8{head[16], head[17]})
	for _, b := range f.answer(head[16], head[17], body) {
		conn.Write([]byte{b}) // in pieces, as sockets do
	}
	conn.Write(f.after)
}

func ok(body ...byte) []byte {
	m, _ := message(0xff, 0, body)
	return m
}

func refuse(h HResult) []byte {
	var p payload
	p.u32(uint32(h))
	m, _ := message(0xff, 0xff, p)
	return m
}

// TestFallBack: older commands are used with an older runtime.
func TestFallBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		knows   uint8
		version int
		seen    [][2]uint8
	}{
		{".NET 10", 6, 5, [][2]uint8{{2, 6}}},
		{".NET 9", 5, 4, [][2]uint8{{2, 6}, {2, 5}}},
		{".NET 6", 3, 2, [][2]uint8{{2, 6}, {2, 5}, {2, 3}}},
		{"none", 0, 0, [][2]uint8{{2, 6}, {2, 5}, {2, 3}}},
	} {
		f := &fakeRuntime{after: []byte("Nettrace"), answer: func(set, id uint8, body []byte) []byte {
			if id > c.knows {
				return refuse(UnknownCommand)
			}
			return ok(9, 0, 0, 0, 0, 0, 0, 0)
		}}
		s, err := NewClient(1, f.dial).Collect(Config{Providers: []Provider{runtimeProvider}})
		expect.Slices(t, f.seen, c.seen, "%s: asked", c.name)
		if c.version == 0 {
			expect.True(t, errors.Is(err, UnknownCommand), "%s: %v", c.name, err)
			continue
		}
		must.True(t, err == nil && s.ID == 9 && s.Version == c.version, "%s: %+v, %v", c.name, s, err)
		got, err := io.ReadAll(s)
		expect.True(t, string(got) == "Nettrace" && err == nil, "%s: %q, %v", c.name, got, err)
	}
}

// TestErrorsEnd: after any other refusal, no older command is tried.
func TestErrorsEnd(t *testing.T) {
	f := &fakeRuntime{answer: func(uint8, uint8, []byte) []byte { return refuse(BadEncoding) }}
	_, err := NewClient(1, f.dial).Collect(Config{})
	expect.True(t, errors.Is(err, BadEncoding) && len(f.seen) == 1, "%v, %v", err, f.seen)
}

func TestStopIsOnAnotherConnection(t *testing.T) {
	f := &fakeRuntime{answer: func(set, id uint8,
		body []byte) []byte {
		return ok(body[:min(8, len(body))]...)
	}}
	c := NewClient(1, f.dial)
	s := &Session{ID: 5, client: c}
	must.Do(t, s.Stop())
	s.Stop()
	expect.Slices(t, f.seen, [][2]uint8{{2, 1}})
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"nothing":         {nil, "no answer"},
		"cut head":        {ok()[:19], "no answer"},
		"other magic":     {append([]byte("HTTP/1.1 400 Bad"), make([]byte, 20)...), "another protocol"},
		"size below 20":   {append(append([]byte("DOTNET_IPC_V1\x00"), 19, 0), 255, 0, 0, 0), "19 bytes"},
		"cut body":        {ok(1, 2, 3)[:22], "cut off"},
		"unknown answer":  {append(append([]byte("DOTNET_IPC_V1\x00"), 20, 0), 255, 7, 0, 0), "id 0x7"},
		"a refusal":       {refuse(UnknownCommand), "80131385"},
		"a bare refusal":  {append(append([]byte("DOTNET_IPC_V1\x00"), 20, 0), 255, 255, 0, 0), "id 0xff"},
		"another HRESULT": {refuse(0x80004005), "80004005"},
	} {
		_, err := readAnswer(iotest.OneByteReader(bytes.NewReader(c.in)))
		expect.True(t, err != nil && strings.Contains(err.Error(), c.want), "%s: %v", name, err)
	}
	body, err := readAnswer(bytes.NewReader(ok(1, 2)))
	expect.True(t, err == nil && bytes.Equal(body, []byte{1, 2}), "%v, %v", body, err)
}

func TestInfo(t *testing.T) {
	var p payload
	p.u32(1)
	p.u64(77)
	p = append(p, make([]byte, 16)...)
	for _, s := range []string{"app 1 2", "linux", "x64", "App", "9.0.5", "linux-x64"} {
		p.text(s)
	}
	f := &fakeRuntime{answer: func(set, id uint8, body []byte) []byte { return ok(p...) }}
	got, err := NewClient(1, f.dial).Info()
	expect.True(t, err == nil && got.PID == 77 && got.CommandLine == "app 1 2" && got.Version == "9.0.5" &&
		got.PortableRID == "linux-x64", "%+v, %v", got, err)
	for n := range p {
		_, err := parseInfo(processInfo3, p[:n])
		expect.True(t, err != nil, "cut at %d", n)
	}
	old := &fakeRuntime{answer: func(set, id uint8, body []byte) []byte {
		if id != processInfo {
			return refuse(UnknownCommand)
		}
		return ok(p[4:]...)
	}}
	got, err = NewClient(1, old.dial).Info()
	expect.True(t, err == nil && got.Arch == "x64" && got.Version == "", "an old runtime: %+v, %v", got, err)
}

// TestPort simulates a runtime at a reverse port: it advertises itself once for every command.
func TestPort(t *testing.T) {
	path := filepath.Join(tempdir.New(t), "p")
	p, err := Listen(path)
	if runtime.GOOS == "windows" {
		expect.True(t, errors.Is(err, ErrNoPort) &&
			strings.Contains(err.Error(), "DOTNET_DefaultDiagnosticPortSuspend"), "%v", err)
		return
	}
	must.Do(t, err)
	defer p.Close()
	expect.Equal(t, p.Variable(), "DOTNET_DiagnosticPorts="+path+",suspend")
	f := &fakeRuntime{answer: func(set, id uint8, body []byte) []byte { return ok(4, 0, 0, 0, 0, 0, 0, 0) }}
	stranger, _ := net.Dial("unix", path)
	stranger.Write([]byte("hello"))
	stranger.Close()
	done := make(chan bool)
	go func() {
		for range 3 {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Error(err)
				break
			}
			ad := append([]byte("ADVR_V1\x00"), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
			ad = append(binary.LittleEndian.AppendUint64(ad, 4711), 0, 0)
			conn.Write(ad)
			f.serve(conn)
		}
		close(done)
	}()
	c := <-p.Runtimes()
	expect.Equal(t, c.PID, 4711, "process")
	s, err := c.Collect(Config{})
	must.True(t, err == nil && s.ID == 4, "%+v, %v", s, err)
	must.Do(t, c.Resume())
	must.Do(t, s.Stop())
	<-done
	expect.Slices(t, f.seen, [][2]uint8{{2, 6}, {4, 1}, {2, 1}})
	select {
	case <-p.Runtimes():
		t.Error("one runtime came twice")
	default:
	}
}

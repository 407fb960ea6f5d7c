package symbol

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestPerfMap(t *testing.T) {
	m := ParsePerfMap([]byte("1000 100 JS:*hot /a b.js:1\n0x2000 0x10 old\n2008 10 newer\nbad line\nxyz 10 x\n3000 0 empty\nffffffffffffffff 2 wraps\n4000 4 \n5000 8 last"))
	for addr, want := range map[uint64]string{
		0xfff: "", 0x1000: "JS:*hot /a b.js:1", 0x10ff: "JS:*hot /a b.js:1", 0x1100: "",
		0x2000: "old", 0x2008: "newer", 0x2017: "newer", 0x2018: "", 0x3000: "", 0x4000: "", 0x5007: "last",
	} {
		got, ok := m.Find(addr)
		expect.True(t, got == want && ok == (want != ""), "%#x: %q %v, want %q", addr, got, ok, want)
	}
	expect.True(t, len(ParsePerfMap([]byte("10 10 " + strings.Repeat("x", 1<<20))).names[0]) <= maxPerfLine,
		"a long name")
}

// TestPerfMapOfManyLines: a program appends the code that it compiles last. Its names are kept if a map is
// larger than what is read.
func TestPerfMapOfManyLines(t *testing.T) {
	const extra = 3
	var b []byte
	for i := range uint64(maxPerfLines + extra) {
		b = fmt.Appendf(b, "%x 8 f%d\n", 0x1000+16*i, i)
	}
	m := ParsePerfMap(b)
	for i, want := range map[uint64]bool{0: false, extra - 1: false, extra: true,
		maxPerfLines + extra - 1: true} {
		name, ok := m.Find(0x1000 + 16*i)
		expect.True(t, ok == want && (!ok || name == fmt.Sprint("f", i)), "line %d: %q", i, name)
	}
	reads := 0
	line := "1 1 " + strings.Repeat("x", maxPerfLine) + "\n"
	text := strings.Repeat(line, maxPerfMap/maxPerfLine) + "1000 10 newest\n"
	f := &perfFile{file: fakeFile{strings.NewReader(text), time.Now(), &reads, nil}}
	name, _ := f.find(0x1008)
	expect.Equal(t, name, "newest")
}

// fakeFile is a perf map in memory that counts its reads.
type fakeFile struct {
	*strings.Reader
	modified time.Time
	reads    *int
	gate     chan struct{} // nil: reading does not wait
}

func (f fakeFile) stat() (int64, time.Time, error) { return f.Size(), f.modified, nil }

func (f fakeFile) ReadAt(b []byte, off int64) (int, error) {
	if f.gate != nil {
		<-f.gate
	}
	if off == 0 {
		*f.reads++
	}
	return f.Reader.ReadAt(b, off)
}

// A map that has grown is read again after the pause; an unchanged one is not.
func TestPerfMapGrows(t *testing.T) {
	reads, now := 0, time.Now()
	set := func(f *perfFile, text string, modified time.Time) {
		f.file, f.due = fakeFile{strings.NewReader(text), modified, &reads, nil}, time.Time{}
	}
	f := &perfFile{}
	for i, c := range []struct {
		text     string
		modified time.Time
		want     string
		reads    int
	}{
		{"", now, "", 0}, {"1000 10 one\n", now, "one", 1}, {"1000 10 one\n", now, "one", 1},
		{"1000 10 two\n", now.Add(1), "two", 2}, {"1000 10 two\n1000 10 three\n", now.Add(1), "three", 3},
	} {
		set(f, c.text, c.modified)
		if got, _ := f.find(0x1008); got != c.want || reads != c.reads {
			t.Errorf("%d: %q after %d reads, want %q after %d", i, got, reads, c.want, c.reads)
		}
	}
	f.file = fakeFile{strings.NewReader("1000 10 later\n"), now, &reads, nil}
	f.due = time.Now().Add(time.Hour)
	got, _ := f.find(0x1008)
	expect.True(t, got == "three" && reads == 3, "%q: read again before the pause", got)
}

// Other names do not wait for the slow read of a perf map.
func TestPerfMapSlow(t *testing.T) {
	reads, gate := 0, make(chan struct{})
	r := NewResolver()
	r.perf = map[string]*perfFile{JITPath(1): {file: fakeFile{strings.NewReader("10 10 slow\n"), time.Time{},
		&reads, gate}}}
	got := make(chan string)
	go func() {
		name, _ := r.Name(JITPath(1), "", 0x10)
		got <- name
	}()
	time.Sleep(10 * time.Millisecond)
	done := make(chan struct{})
	go func() { r.Name("/no/such/file", "", 0); r.Name(JITPath(2), "", 0); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a name waits for another file")
	}
	close(gate)
	expect.Equal(t, <-got, "slow")
}

// This test's process writes a perf map. It names the process's code while it is open, even after the file is
// gone.
func TestKeepPerfMap(t *testing.T) {
	pid := os.Getpid()
	path := fmt.Sprintf("/tmp/perf-%d.map", pid)
	must.True(t, openPerfMap(pid) == nil, "%s is there", path)
	if err := os.WriteFile(path, []byte("1000 10 here\n"), 0o600); err != nil {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	defer os.Remove(path)
	r := NewResolver()
	name, ok := r.Name(JITPath(pid), "", 0x1004)
	expect.True(t, !ok, "%q before the map was kept", name)
	if !r.KeepPerfMap(pid) {
		t.Skip("SKIPPED-CHECK: no perf maps here")
	}
	os.Remove(path)
	name, ok = r.Name(JITPath(pid), "", 0x1004)
	expect.True(t, ok && name == "here" && r.KeepPerfMap(pid), "%q, %v", name, ok)
	expect.True(t, !r.KeepPerfMap(1<<30), "a map of no process")
}

package client

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

func build(t *testing.T, argv ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED-CHECK: the client library is for Linux")
	}
	needs.Command(t, "gcc")
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	must.True(t, err == nil, "%v: %v\n%s", argv, err, out)
}

// The library needs no other library and no symbol version, exports its own names only, and is small.
func TestNeedsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libseedwalk_client.so")
	build(t, "./build.sh", "shared", path)
	f := must.Get(elf.Open(path))(t)
	defer f.Close()
	libs, _ := f.ImportedLibraries()
	expect.True(t, len(libs) == 0, "it needs %v", libs)
	symbols, _ := f.DynamicSymbols()
	shown := 0
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF && s.Version != "":
			t.Errorf("%s has the version %s", s.Name, s.Version)
		case s.Section != elf.SHN_UNDEF && s.Section != elf.SHN_ABS && elf.ST_TYPE(s.Info) == elf.STT_FUNC:
			shown++
			expect.True(t, strings.HasPrefix(s.Name, "seedwalk_"), "it shows %s", s.Name)
		}
	}
	for _, p := range f.Progs {
		expect.True(t, p.Type != elf.PT_TLS, "it has thread-local storage")
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 100<<10 || shown < 15 {
		t.Errorf("%d bytes, %d functions, %v", st.Size(), shown, err)
	}
}

// The client library knows the names of gaps without a helper. For a truncated name, it returns the truncated
// length. The version is the one that was given to the build.
func TestTexts(t *testing.T) {
	dir := tempdir.New(t)
	archive, exe := filepath.Join(dir, "libseedwalk_client.a"), filepath.Join(dir, "texts")
	build(t, "./build.sh", "archive", archive, "v1.2.3-4")
	build(t, "gcc", "-Wall", "-Wextra", "-Werror", "-I..", "-o", exe, "testdata/texts.c", archive)
	const want = "1 v1.2.3-4\n3 no-\n4 none\n13 code-unloaded\n4 gap?\n"
	out, err := exec.Command(exe).CombinedOutput()
	expect.True(t, err == nil && string(out) == want, "%v: %s\nwant %s", err, out, want)
}

// decoder builds the decoder with the compiler's memory checks.
func decoder(t *testing.T) string {
	exe := filepath.Join(t.TempDir(), "decode")
	build(t, "gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-I..", "-o", exe, "testdata/decode.c", "src/stream.c", "src/system_linux.c")
	return exe
}

// sent returns a stream with every kind of message, and what the client prints for it.
func sent() (stream []byte, shown string) {
	w := wire.NewWriter(nil)
	var text strings.Builder
	w.Hello(&wire.Hello{PID: 1, Arch: "amd64"})
	w.GapName(3, "truncated")
	w.Module(&wire.Module{ID: 1, Start: 0x1000, End: 0x2000, Bias: 0x800, Path: "/lib/a.so", BuildID: "abcd"})
	w.Method(&wire.Method{ID: 2, FunctionID: 0x77, Name: "N.T.M", Module: "N"})
	w.Thread(&wire.Thread{TID: 9, Name: "worker"})
	frames := []wire.Frame{{Kind: unwind.KindNative, Trust: 2, Flags: wire.FrameExact, Module: 1, IP: 0x1810},
		{Kind: unwind.KindManaged, Trust: 7, Method: 2, IP: 0x7f0000001234}, {Kind: unwind.KindGap, Gap: 3}}
	const rows = ` 0 2 0 1 1810 0 1 "" "/lib/a.so" "abcd" 1010
 1 7 0 0 7f0000001234 77 0 "N.T.M" "N" "" 0
 4 0 3 0 0 0 0 "" "" "" 0
`
	for i := range 40 {
		w.Sample(&wire.Sample{TID: 9, TimeUnixNano: int64(i), WallNanos: 5,
			CPUNanos: 6, Gap: 3, Frames: frames})
		fmt.Fprintf(&text, "stack 9 %d 5 6 tag 0 gap 3 doubtful 1 \"worker\"\n%s", i, rows)
		w.Stats("key", 1)
		w.Event(&wire.Event{TID: 8, TimeUnixNano: 4, Kind: wire.EventCopy, Lock: 12345,
			Name: "n", Text: "t", Frames: frames})
		fmt.Fprintf(&text, "stack 8 4 0 0 tag 12345 gap 0 doubtful 1 \"\"\n%s", rows)
		w.Event(&wire.Event{TID: 8, Kind: wire.EventWait, Frames: frames})
	}
	w.Note("a note")
	w.Bye("done")
	text.WriteString("end 2 a note done\n")
	return w.Bytes(), text.String()
}

// The client decodes what the engine's writer writes, whatever the sizes of the pieces.
func TestDecode(t *testing.T) {
	exe, path := decoder(t), filepath.Join(t.TempDir(), "stream")
	stream, want := sent()
	must.Do(t, os.WriteFile(path, stream, 0o644))
	for _, piece := range []string{"1", "7", "1000000"} {
		if out, err := exec.Command(exe, piece, path).CombinedOutput(); err != nil || string(out) != want {
			t.Fatalf("in pieces of %s: %v\n%.2000s\nwant\n%.2000s", piece, err, out, want)
		}
	}
	t.Run("many threads", func(t *testing.T) { decodeManyThreads(t, exe) })
	t.Run("damaged", func(t *testing.T) { decodeDamaged(t, exe, stream) })
}

// A live thread keeps its name, however many have ended since.
func decodeManyThreads(t *testing.T, exe string) {
	path := filepath.Join(tempdir.New(t), "stream")
	must.Do(t, exec.Command("mkfifo", path).Run())
	var shown strings.Builder
	cmd := exec.Command(exe, "1000000", path)
	cmd.Stdout, cmd.Stderr = &shown, &shown
	must.Do(t, cmd.Start())
	w, self := wire.NewWriter(nil), uint64(cmd.Process.Pid)
	w.Thread(&wire.Thread{TID: self, Name: "main"})
	for i := range uint64(10000) {
		w.Thread(&wire.Thread{TID: 1<<23 + i, Name: "ended"}) // more than the kernel's last number
	}
	w.Sample(&wire.Sample{TID: self})
	must.Do(t, os.WriteFile(path, w.Bytes(), 0))
	want := fmt.Sprintf("stack %d 0 0 0 tag 0 gap 0 doubtful 0 \"main\"\n", self)
	err := cmd.Wait()
	expect.True(t, err == nil && shown.String() == want, "%v: %s\nwant %s", err, shown.String(), want)
}

// Damaged streams end in an error or decode partially, without memory errors.
func decodeDamaged(t *testing.T, exe string, stream []byte) {
	const streams = 300
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	args := []string{"4096"}
	for i := range streams {
		b := append([]byte(nil), stream...)
		for range 1 + r.IntN(8) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if i%3 == 0 {
			b = b[:r.IntN(len(b))]
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		must.Do(t, os.WriteFile(path, b, 0o644))
		args = append(args, path)
	}
	out, err := exec.Command(exe, args...).CombinedOutput()
	last := out[max(0, bytes.LastIndex(out, []byte("file "+dir))):]
	must.Equal(t, err, nil, "the last stream begun: %.3000s", last)
	malformed := bytes.Count(out, []byte("\nend 3"))
	expect.True(t, malformed >= 20, "only %d of %d streams were found to be malformed", malformed, streams)
}

// A close that gives up after its limit changes nothing, and a later close succeeds. A forked child can open
// a sampler, whatever the threads of its parent did at the fork. A process that adopts the helper keeps no
// zombie. The helper of a process with few descriptors has none of them.
func TestLife(t *testing.T) {
	exe := life(t)
	for _, way := range []string{"close", "fork", "adopt", "full"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(exe, way)
			cmd.Env = append(os.Environ(), "SEEDWALK_ENGINE="+must.Get(os.Executable())(t))
			out, err := cmd.CombinedOutput()
			expect.True(t, err == nil, "%v: %s", err, out)
		})
	}
}

// life builds the program that uses the client library.
func life(t *testing.T) string {
	dir := tempdir.New(t)
	archive, exe := filepath.Join(dir, "libseedwalk_client.a"), filepath.Join(dir, "life")
	build(t, "./build.sh", "archive", archive)
	build(t, "gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I..", "-I.", "-o", exe,
		"testdata/life.c", archive, "-lpthread", "-ldl")
	return exe
}

// Without a helper, the library writes copies into a file until the file is full, and counts the copies that
// find no room. A forked child does not write there. A file that exists and a link are errors.
func TestKeep(t *testing.T) {
	path := filepath.Join(tempdir.New(t), "copies")
	out := must.Run(t, exec.Command(life(t), "keep", path))
	var pid uint32
	var copies, dropped uint64
	_, err := fmt.Sscan(out, &pid, &copies, &dropped)
	expect.True(t, err == nil && dropped >= 2 && copies >= 100, "%s: %v", out, err)
	b := must.Get(os.ReadFile(path))(t)
	k := must.Get(probe.ReadKept(b))(t)
	tags := map[uint32]uint64{} // of each thread: the next
	k.Read(func(r *probe.Record) {
		if r.Event != probe.AskedCopy || r.Since != tags[r.TID] || len(r.Stack) < 64 || r.Time == 0 {
			t.Errorf("event %#x of thread %d has tag %d, want %d, and %d bytes of stack", r.Event, r.TID,
				r.Since, tags[r.TID], len(r.Stack))
		}
		tags[r.TID]++
		copies--
	})
	expect.True(t, k.PID == pid && k.Dropped == dropped && copies == 0 && len(tags) == 2 &&
		len(k.Damage) == 0, "process %d, want %d; %d dropped, want %d; %d copies lost; %d threads; damage %v",
		k.PID, pid, k.Dropped, dropped, copies, len(tags), k.Damage)
	st := must.Get(os.Stat(path))(t)
	expect.True(t, st.Mode() == 0o600, "the file's mode is %v", st.Mode())
}

// A full disk is an error, although a file system would let the file have its size.
func TestKeepNoSpace(t *testing.T) {
	dir, exe := tempdir.New(t), life(t)
	mount := "mount -t tmpfs -o size=2m none " + dir
	if out, err := exec.Command("unshare", "-m", "sh", "-c", mount).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: no small file system can be mounted: %v %s", err, out)
	}
	must.Run(t, exec.Command("unshare", "-m", "sh", "-c", mount+" && exec "+exe+" no-space "+dir+"/copies"))
}

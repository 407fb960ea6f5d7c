package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const sampleTrace = "../../eventpipe/waits/testdata/livestart.nettrace"

// TestWaitsBadInput: bad input ends in one line with the reason, and exit code 1; the waits read before it
// are shown.
func TestWaitsBadInput(t *testing.T) {
	trace := must.Get(os.ReadFile(sampleTrace))(t)
	path := must.Get(filepath.Abs(sampleTrace))(t)
	write := func(name string, b []byte) string {
		p := filepath.Join(tempdir.New(t), name)
		must.Do(t, os.WriteFile(p, b, 0o644))
		return p
	}
	for _, c := range []struct {
		name, stdout, stderr string
		args                 []string
		code                 int
	}{
		{"whole", "43 waits", "", []string{path}, 0},
		{"flags behind the file", `"seedwalk-waits"`, "", []string{path, "--format", "json"}, 0},
		{"cut in the middle", "waits", "at offset 150000", []string{write("a", trace[:150000])}, 1},
		{"without its end mark", "43 waits", "without its end mark",
			[]string{write("a", trace[:len(trace)-1])}, 1},
		{"two traces", "43 waits", "another trace begins",
			[]string{write("a", append(append([]byte{}, trace...), trace...))}, 1},
		{"garbage behind the end", "43 waits", "bytes follow",
			[]string{write("a", append(append([]byte{}, trace...), 1, 2, 3))}, 1},
		{"empty", "", "empty", []string{write("a", nil)}, 1},
		{"gzip", "", "gzip", []string{write("a", []byte("\x1f\x8b\x08\x00aaaaaaaaa"))}, 1},
		{"netperf without content", "", "without its end mark",
			[]string{write("a", []byte("\x14\x00\x00\x00!FastSerialization.1"))}, 1},
		{"not there", "", "nowhere.nettrace: ", []string{"nowhere.nettrace"}, 3},
		{"a folder", "", "is a directory", []string{tempdir.New(t)}, 3},
		{"nothing named", "", "name a trace", nil, 2},
		{"two named", "", "name a trace", []string{path, "--pid", "5"}, 2},
		{"two files", "", "one file at a time", []string{path, path}, 2},
		{"no such format", "", "no format", []string{"--format", "x", path}, 2},
		{"no such flag", "", "--help", []string{"--wrong"}, 2},
		{"a thread that is no number", "", "--thread x: not a number", []string{"--thread", "x", path}, 2},
		{"live flags for a file", "", "not a file", []string{"--follow", path}, 2},
		{"no rows", "", "--top must be at least 1", []string{"--top", "0", path}, 2},
		{"buffer", "", "--buffer", []string{"--buffer", "0", "--pid", "1"}, 2},
		{"since the end", "no waits", "", []string{"--since", "1h", path}, 0},
		{"until the start", "no waits", "", []string{"--until", "1us", path}, 0},
		{"filtered", "no waits", "", []string{"--min-duration", "1h", path}, 0},
	} {
		stdout, stderr, code, _ := tool(t, append([]string{"waits"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) ||
			c.stdout == "" && stdout != "" {
			t.Errorf("%s: exit code %d, want %d\n%s\n%s", c.name, code, c.code, stdout, stderr)
		}
		if n := strings.Count(stderr, "\n"); n > 1 || c.code == 0 && n > 0 {
			t.Errorf("%s: %q is not one line", c.name, stderr)
		}
	}
}

func TestWaitsJSONFile(t *testing.T) {
	path, _ := filepath.Abs(sampleTrace)
	_, stderr, code, dir := tool(t, "waits", "--output", "w.json", "--thread", "27713",
		"--min-duration", "10ms", path)
	must.True(t, code == 0 && strings.Contains(stderr, "wrote w.json"), "%d %s", code, stderr)
	b := must.Get(os.ReadFile(filepath.Join(dir, "w.json")))(t)
	var got struct {
		Waits []struct{ Thread uint64 }
	}
	err := json.Unmarshal(b, &got)
	expect.True(t, err == nil && len(got.Waits) == 1 && got.Waits[0].Thread == 27713, "%+v, %v", got, err)
}

// TestWaitsExample compares the example in docs/waits.md with the tool's output.
func TestWaitsExample(t *testing.T) {
	trace := must.Get(filepath.Abs("../../eventpipe/waits/testdata/liveexample.nettrace"))(t)
	stdout, stderr, code, _ := tool(t, "waits", trace, "--min-duration", "100ms")
	must.True(t, code == 0 && stderr == "", "%d %s", code, stderr)
	const command = "$ seedwalk waits eventpipe/waits/testdata/liveexample.nettrace --min-duration 100ms"
	b := must.Get(os.ReadFile("../../docs/waits.md"))(t)
	_, shown, ok := strings.Cut(string(b), command+"\n")
	shown, _, _ = strings.Cut(shown, "```")
	expect.True(t, ok && shown == stdout, "docs/waits.md shows\n%s\nprinted is\n%s", shown, stdout)
}

const oneMS = 1_000_000

// damaged is a trace with a fault in the middle: thread 1 waits 5 ms, then the case damages the trace, then
// thread 2 waits 7 ms.
type damaged struct {
	*nettracefile.Writer
	now uint64
}

func newDamaged(o nettracefile.Options) *damaged {
	o.Ticks = 100 * oneMS
	d := &damaged{nettracefile.New(o), o.Ticks}
	d.Metadata(nettracefile.Meta{ID: 1, Provider: clrevent.Runtime, Event: 301},
		nettracefile.Meta{ID: 2, Provider: clrevent.Runtime, Event: 302})
	d.Stacks(1, []uint64{0x1001})
	return d
}

// start writes the event with which a thread's wait begins, and stop the one with which it ends.
func (d *damaged) start(thread uint64, seq, stack uint32) *damaged {
	d.now += oneMS
	d.Events(nettracefile.Event{Meta: 1, Seq: seq, Thread: thread, Stack: stack,
		Time: d.now, Payload: make([]byte, 11)})
	return d
}

func (d *damaged) stop(thread uint64, seq uint32, after uint64) *damaged {
	d.now += after * oneMS
	d.Events(nettracefile.Event{Meta: 2, Seq: seq, Thread: thread, Time: d.now, Payload: make([]byte, 2)})
	return d
}

var atOffset = regexp.MustCompile(`, (first |the first |first seen )?at offset (\d+)`)

// TestWaitsEveryBadInput: each kind of bad input is one line with the offset, and exit code 1. The waits
// before it are shown and, if reading can continue, those after it.
func TestWaitsEveryBadInput(t *testing.T) {
	whole := func(hurt func(d *damaged)) []byte {
		d := newDamaged(nettracefile.Options{})
		d.start(1, 1, 1).stop(1, 2, 5)
		hurt(d)
		return d.start(2, 1, 1).stop(2, 2, 7).End().Bytes()
	}
	trace := whole(func(*damaged) {})
	block := func(name string, content ...byte) func(d *damaged) {
		return func(d *damaged) { d.Block(name, content) }
	}
	const both = "2 waits, 12.000 ms"
	for _, c := range []struct {
		name           string
		in             []byte
		stdout, stderr string
	}{
		{"truncated in a block", trace[:len(trace)-20], "2 waits, 5.000 ms", "cut off"},
		{"truncated between blocks", trace[:len(trace)-1], both, "without its end mark"},
		{"unknown block", whole(block("NovelBlock", 1, 2, 3)), both, "unknown kind"},
		{"undefined stack", whole(func(d *damaged) { d.start(1, 3, 99).stop(1, 4, 3) }),
			"3 waits, 15.000 ms", "stack is lost"},
		{"expired stack", whole(func(d *damaged) {
			d.Point(d.now)
			d.start(1, 3, 1).stop(1, 4, 3)
			d.Stacks(1, []uint64{0x1001})
		}), "3 waits, 15.000 ms", "stack is lost"},
		{"gap", whole(func(d *damaged) { d.start(1, 3, 1).stop(1, 9, 3) }), both, "5 events were lost"},
		{"gap at a sequence point", whole(func(d *damaged) {
			d.Point(d.now, nettracefile.ThreadSeq{Thread: 1, Seq: 6})
			d.Stacks(1, []uint64{0x1001})
		}), both, "4 events were lost"},
		{"wrong payload size", whole(func(d *damaged) {
			d.Events(nettracefile.Event{Meta: 1, Seq: 3, Thread: 1, Stack: 1,
				Time: d.now, Payload: make([]byte, 3)})
			d.stop(1, 4, 3)
		}), "3 waits, 15.000 ms", "malformed"},
		{"wrong size of an event",
			whole(block("EventBlock",
				append([]byte{20, 0, 1, 0}, append(make([]byte, 16), 128, 0, 100, 1, 2)...)...)), both,
			"an event is damaged"},
		{"wrong size of a stack", whole(block("StackBlock", 9, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3)),
			both, "block of stacks is damaged"},
		{"wrong size of a block", whole(func(d *damaged) {
			d.Raw(5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0).Raw([]byte("SPBlock\x06\xff\xff\xff\xff")...)
		}), "1 wait, 5.000 ms", "size is impossible"},
		{"clock that goes back",
			whole(func(d *damaged) { d.start(1, 3, 1); d.now -= 3 * oneMS; d.stop(1, 4, 0) }), both,
			"clock goes back"},
		{"many kinds of damage", whole(func(d *damaged) {
			block("NovelBlock", 1, 2, 3)(d)
			d.start(1, 3, 99).stop(1, 1<<31, 3)
			block("StackBlock", 9, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3)(d)
		}), "2 waits, 12.000 ms", "more in the report; kept: 6 events"},
		{"version 3 with a tag of 4",
			append([]byte("\x14\x00\x00\x00!FastSerialization.1\x05\x04\x01"), make([]byte, 64)...),
			"", "tag 5"},
		{"big-endian look-alike",
			append([]byte("Nettrace\x00\x00\x00\x14!FastSerialization.1"), trace[32:]...), "",
			"not a .nettrace trace"},
		{"two streams in one file", slices.Concat(trace, trace), both, "another trace begins"},
	} {
		path := filepath.Join(tempdir.New(t), "in.nettrace")
		must.Do(t, os.WriteFile(path, c.in, 0o644))
		stdout, stderr, code, _ := tool(t, "waits", path)
		if code != 1 || !strings.HasPrefix(stdout, c.stdout) || c.stdout == "" && stdout != "" ||
			c.stdout != "" && !strings.Contains(stdout, "partial: ") {
			t.Errorf("%s: exit code %d, want 1 and %q\n%s\n%s", c.name, code, c.stdout, stdout, stderr)
		}
		at := atOffset.FindStringSubmatch(stderr)
		expect.True(t, !strings.Contains(stderr, "2147483"),
			"%s: the number of lost events is a damaged value: %s", c.name, stderr)
		if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.stderr) || at == nil ||
			at[2] == "0" && c.stdout != "" {
			t.Errorf("%s: %q is not one line with an offset and %q", c.name, stderr, c.stderr)
		}
	}
}

// A command that cannot be started is named, with what to do.
func TestWaitsNotStarted(t *testing.T) {
	_, stderr, code, _ := tool(t, "waits", "--", "no-such-command")
	expect.True(t, code == 127 &&
		stderr == "seedwalk waits: no-such-command: command not found; check the name and PATH\n",
		"%d %q", code, stderr)
	folder := tempdir.New(t)
	_, stderr, code, _ = tool(t, "waits", "--", folder)
	expect.True(t, code >= 126 && strings.HasPrefix(stderr, "seedwalk waits: "+folder+": c"),
		"%d %q", code, stderr)
}

// TestWaitsBlind: what a trace cannot show is said once, in the text or on the standard error, and is exit
// code 1.
func TestWaitsBlind(t *testing.T) {
	const want = "this trace has no wait events"
	path := filepath.Join(tempdir.New(t), "in.nettrace")
	must.Do(t, os.WriteFile(path, newDamaged(nettracefile.Options{}).End().Bytes(), 0o644))
	stdout, stderr, code, _ := tool(t, "waits", path)
	expect.True(t, code == 1 && strings.HasPrefix(stdout, "WARNING: "+want) && stderr == "",
		"%d %q\n%s", code, stderr, stdout)
	_, stderr, code, _ = tool(t, "waits", "--format", "csv", path)
	expect.True(t, code == 1 && strings.Count(stderr, want) == 1, "%d %q", code, stderr)
}

// TestWaitsThreadReuse: a reused thread number is no damage; a wait that the first thread had not ended when
// it exited does not become a long wait.
func TestWaitsThreadReuse(t *testing.T) {
	d := newDamaged(nettracefile.Options{})
	trace := d.start(1, 1, 1).start(1, 1, 1).stop(1, 2, 400).End().Bytes()
	path := filepath.Join(tempdir.New(t), "in.nettrace")
	must.Do(t, os.WriteFile(path, trace, 0o644))
	stdout, stderr, code, _ := tool(t, "waits", path)
	expect.True(t, code == 0 && stderr == "" && strings.HasPrefix(stdout, "1 wait, 400.000 ms") &&
		strings.Contains(stdout, "1 wait is unreliable"), "%d %s\n%s", code, stderr, stdout)
}

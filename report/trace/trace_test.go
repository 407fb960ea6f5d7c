package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

// payload joins values in the form of events: integers, texts, and pointers.
func payload(pointer int, values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			for _, c := range utf16.Encode([]rune(v)) {
				b = binary.LittleEndian.AppendUint16(b, c)
			}
			b = append(b, 0, 0)
		case uintptr:
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(v))[:pointer]...)
		default:
			b, _ = binary.Append(b, binary.LittleEndian, v)
		}
	}
	return b
}

// Descriptions of the events of a trace for tests.
const (
	metaSample = iota + 1
	metaTick
	metaException
	metaSuspend
	metaGC
	metaRestart
	metaJIT
	metaLoad
	metaListed
	metaOwn
	metaRuntime
	metaQueued
	metaTaken
	metaAdjusted
)

var metas = []nettracefile.Meta{
	{ID: metaSample, Provider: clrevent.Sampler},
	{ID: metaTick, Provider: clrevent.Runtime, Event: 10, Version: 4},
	{ID: metaException, Provider: clrevent.Runtime, Event: 80, Version: 1},
	{ID: metaSuspend, Provider: clrevent.Runtime, Event: 9, Version: 1},
	{ID: metaGC, Provider: clrevent.Runtime, Event: 1, Version: 2},
	{ID: metaRestart, Provider: clrevent.Runtime, Event: 3, Version: 1},
	{ID: metaJIT, Provider: clrevent.Runtime, Event: 145, Version: 1},
	{ID: metaLoad, Provider: clrevent.Runtime, Event: 143, Version: 1},
	{ID: metaListed, Provider: clrevent.Rundown, Event: 144, Version: 1},
	{ID: metaOwn, Provider: "My-Source", Event: 7, Name: "Ordered"},
	{ID: metaRuntime, Provider: clrevent.Rundown, Event: 187},
	{ID: metaQueued, Provider: clrevent.Framework, Event: 30},
	{ID: metaTaken, Provider: clrevent.Framework, Event: 31},
	{ID: metaAdjusted, Provider: clrevent.Runtime, Event: 55},
}

func method(name string, start uint64) []byte {
	return payload(8, uint64(start), uint64(1), start, uint32(0x100), uint32(1), uint32(jitted),
		"App.Main", name, "void ()", uint16(1))
}

func listed(w *nettracefile.Writer, seq uint32) {
	w.Events(nettracefile.Event{Meta: metaListed, Seq: seq, Thread: 9, Time: 9e6,
		Payload: method("Work", 0x1000)},
		nettracefile.Event{Meta: metaListed, Seq: seq + 1, Thread: 9, Time: 9e6,
			Payload: method("Run", 0x2000)},
		nettracefile.Event{Meta: metaRuntime, Seq: seq + 2, Thread: 9, Time: 9e6,
			Payload: payload(8, [6]uint16{}, [4]uint16{9, 0, 525, 1}, uint32(0),
				uint8(0), "app", [16]byte{}, "/")})
}

// example is a trace of two samples of two threads, and one event of each kind.
func example(o nettracefile.Options, events, names bool) *bufio.Reader {
	w := nettracefile.New(o).Metadata(metas...)
	if o.Version >= 6 {
		w.Threads(nettracefile.Thread6{Index: 5, TID: 5}, nettracefile.Thread6{Index: 6, TID: 6},
			nettracefile.Thread6{Index: 9, TID: 9})
	}
	w.Stacks(1, []uint64{0x1010, 0x2010}, []uint64{0x2020})
	p := w.PointerSize
	all := []nettracefile.Event{
		{Meta: metaSample, Capture: 9, Thread: 5, Time: 1e6, Stack: 1, Payload: payload(p, uint32(2))},
		{Meta: metaSample, Capture: 9, Thread: 6, Time: 1e6, Stack: 2, Payload: payload(p, uint32(1))},
		{Meta: metaSample, Capture: 9, Thread: 5, Time: 3e6, Stack: 1, Payload: payload(p, uint32(2))},
		{Meta: metaSample, Capture: 9, Thread: 6, Time: 3e6, Stack: 2, Payload: payload(p, uint32(1))},
	}
	if events {
		all = append(all, []nettracefile.Event{
			{Meta: metaTick, Thread: 5, Time: 4e6, Stack: 1,
				Payload: payload(p, uint32(1), uint32(0), uint16(1), uint64(102400), uintptr(1), "App.Node",
					uint32(0), uintptr(2), uint64(24))},
			{Meta: metaException, Thread: 5, Time: 4e6, Stack: 1,
				Payload: payload(p, "App.Fault", "odd", uintptr(1), uint32(7))},
			// The sampler suspends the threads too.
			{Meta: metaSuspend, Thread: 5, Time: 5e6, Stack: 1, Payload: payload(p, uint32(0), uint32(1))},
			{Meta: metaRestart, Thread: 5, Time: 6e6, Payload: payload(p, uint16(1))},
			{Meta: metaSuspend, Thread: 5, Time: 6e6, Stack: 1, Payload: payload(p, uint32(1), uint32(1))},
			{Meta: metaGC, Thread: 5, Time: 6e6,
				Payload: payload(p, uint32(1), uint32(2), uint32(1), uint32(0))},
			{Meta: metaRestart, Thread: 5, Time: 7.5e6, Payload: payload(p, uint16(1))},
			{Meta: metaJIT, Thread: 5, Time: 7.5e6, Stack: 2,
				Payload: payload(p, uint64(0x3000), uint64(1), uint32(1), uint32(20), "App.Main", "New", "")},
			{Meta: metaLoad, Thread: 5, Time: 8e6, Payload: method("New", 0x3000)},
			{Meta: metaOwn, Thread: 6, Time: 8e6, Stack: 2},
			// One of three items is read as taken first, and one was queued before the trace.
			{Meta: metaQueued, Thread: 6, Time: 8e6, Stack: 2, Payload: payload(p, uint64(0x77))},
			{Meta: metaTaken, Thread: 5, Time: 8.5e6, Payload: payload(p, uint64(0x77))},
			{Meta: metaTaken, Thread: 5, Time: 8.7e6, Payload: payload(p, uint64(0x78))},
			{Meta: metaQueued, Thread: 6, Time: 8.6e6, Stack: 2, Payload: payload(p, uint64(0x78))},
			{Meta: metaTaken, Thread: 5, Time: 8.8e6, Payload: payload(p, uint64(0x79))},
			{Meta: metaQueued, Thread: 6, Time: 8.9e6, Stack: 2, Payload: payload(p, uint64(0x79))},
			{Meta: metaAdjusted, Thread: 6, Time: 9e6, Stack: 2,
				Payload: payload(p, uint64(0), uint32(3), uint32(3), uint16(1))},
			{Meta: metaAdjusted, Thread: 6, Time: 9e6, Stack: 2,
				Payload: payload(p, uint64(0), uint32(4), uint32(6), uint16(1))},
		}...)
	}
	seq := map[uint64]uint32{}
	for i := range all {
		e := &all[i]
		if e.Capture == 0 {
			e.Capture = e.Thread
		}
		seq[e.Capture]++
		e.Seq = seq[e.Capture]
	}
	w.Events(all...)
	if names {
		listed(w, seq[9]+1)
	}
	return bufio.NewReader(bytes.NewReader(w.End().Bytes()))
}

// lines writes each stack in one line: thread, frames from the root to the leaf, event, values, type, and
// message.
func lines(p *export.Profile) (out []string) {
	for i := range p.Stacks {
		s := &p.Stacks[i]
		var names []string
		for _, f := range slices.Backward(s.Frames) {
			names = append(names, p.Frames[f].Name)
		}
		out = append(out, fmt.Sprintf("%d %s %q %d %d %d/%d %s %s", p.Threads[s.Thread].ID,
			strings.Join(names, ";"), s.Event, s.Count, s.Sum, s.WallNanos, s.CPUNanos, s.Type, s.Message))
	}
	slices.Sort(out)
	return out
}

// timed writes the events with a time in one line, in microseconds.
func timed(p *export.Profile) (out string) {
	for _, w := range p.Waits {
		out += fmt.Sprintf("%v %d+%d, ", p.Stacks[w.Stack].Event,
			w.Start.Sub(p.Start).Microseconds(), w.Nanos/1000)
	}
	return out
}

const wantTimed = "exception 4000+0, GC pause 6000+1500, JIT method 7500+500, queued item 8000+500, queued item 8600+100, starvation 9000+0, "

var want = []string{
	`5 App.Main.Run "JIT method" 1 500000 0/0 App.Main.New `,
	`5 App.Main.Run;App.Main.Work "" 2 0 2000000/2000000  `,
	`5 App.Main.Run;App.Main.Work "GC pause" 1 1500000 0/0 gen 2 GC: GC.Collect `,
	`5 App.Main.Run;App.Main.Work "allocation" 1 102400 0/0 App.Node `,
	`5 App.Main.Run;App.Main.Work "exception" 1 0 0/0 App.Fault odd`,
	`6 App.Main.Run "" 2 0 2000000/0  `,
	`6 App.Main.Run "event" 1 0 0/0 My-Source/Ordered `,
	`6 App.Main.Run "queued item" 2 600000 0/0  `,
	`6 App.Main.Run "starvation" 1 0 0/0  `,
}

// TestForms: the same events in every form of the format give the same profile.
func TestForms(t *testing.T) {
	for _, version := range []int{2, 3, 4, 5, 6} {
		for _, size := range []int{4, 8} {
			for _, plain := range []bool{false, true} {
				if version == 2 && size == 4 {
					continue // 64 bit only
				}
				o := nettracefile.Options{Version: version, PointerSize: size, Plain: plain}
				tr := New()
				expect.Equal(t, tr.Read(example(o, true, true)), nil, o)
				p := tr.Profile()
				if got := lines(p); !slices.Equal(got, want) {
					t.Errorf("%+v:\n%s", o, strings.Join(got, "\n"))
				}
				expect.True(t, p.Runtime == ".NET 9.0.5" && len(p.Samples) == 4 && timed(p) == wantTimed &&
					p.Check() == nil, "%+v: %q, %d samples, %s, %v", o, p.Runtime, len(p.Samples), timed(p),
					p.Check())
			}
		}
	}
}

// TestFiles: a second trace of the process names the methods of the first one, and compressed
// traces are read too.
func TestFiles(t *testing.T) {
	bare := example(nettracefile.Options{PID: 7}, false, false)
	var z bytes.Buffer
	out := gzip.NewWriter(&z)
	names := nettracefile.New(nettracefile.Options{PID: 7}).Metadata(metas...)
	listed(names, 1)
	out.Write(names.End().Bytes())
	out.Close()
	tr, packed := New(), bufio.NewReader(&z)
	expect.True(t, IsTrace(bare) && IsTrace(packed) && !IsTrace(bufio.NewReader(strings.NewReader("SWREC"))),
		"a trace is not recognized")
	must.Do(t, tr.Read(bare))
	p := tr.Profile()
	expect.True(t, strings.Contains(strings.Join(lines(p), " "), "unknown code at 0x1010") &&
		len(p.Stats.Notes) == 1, "%q, %q", lines(p), p.Stats.Notes)
	tr = New()
	must.Do(t, tr.Read(example(nettracefile.Options{PID: 7}, false, false)))
	must.Do(t, tr.Read(packed))
	got := lines(tr.Profile())
	expect.True(t, len(got) == 2 && strings.HasPrefix(got[0], "5 App.Main.Run;App.Main.Work "), "%q", got)
	expect.Equal(t, tr.Read(example(nettracefile.Options{PID: 8}, false, false)), ErrOtherProcess,
		"another process")
}

// TestMissing: a trace says which metrics it cannot show, and how they are recorded.
func TestMissing(t *testing.T) {
	tr := New()
	tr.Read(example(nettracefile.Options{}, false, true))
	for metric, provider := range map[string]string{"cpu": "", "wall": "", "samples": "", "nonsense": "",
		"lock": "0x4000", "waits": "0x40000000000", "alloc_space": "0x1",
		"exceptions": "0x8000", "gc_pause": "0x1", "jit_time": "0x10", "events": "provider"} {
		if got := tr.Missing(metric); (got == "") != (provider == "") || !strings.Contains(got, provider) {
			t.Errorf("%s: %q", metric, got)
		}
	}
	tr = New()
	tr.Read(bufio.NewReader(bytes.NewReader(nettracefile.New(nettracefile.Options{}).End().Bytes())))
	p := tr.Profile()
	expect.True(t, strings.Contains(p.Stats.Empty, clrevent.Sampler) && tr.Missing("cpu") == p.Stats.Empty,
		"an empty trace: %q", p.Stats.Empty)
}

// TestDamaged: a trace that is cut at any byte, or has any byte changed, gives a profile without
// invalid indices. A trace that is cut also gives an error.
func TestDamaged(t *testing.T) {
	for _, version := range []int{4, 6} {
		whole := new(bytes.Buffer)
		whole.ReadFrom(example(nettracefile.Options{Version: version}, true, true))
		for i := range whole.Len() {
			tr := New()
			expect.True(t, tr.Read(bufio.NewReader(bytes.NewReader(whole.Bytes()[:i]))) != nil,
				"version %d, cut at %d: no error", version, i)
			flipped := bytes.Clone(whole.Bytes())
			flipped[i] ^= 0xff
			tr2 := New()
			tr2.Read(bufio.NewReader(bytes.NewReader(flipped)))
			for _, p := range []*export.Profile{tr.Profile(), tr2.Profile()} {
				if p != nil && p.Check() != nil {
					t.Fatalf("version %d, byte %d: %v", version, i, p.Check())
				}
			}
		}
	}
}

// TestModes: a trace whose samples are next to all in native code has no CPU time.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		managed int // of 100 samples
		known   bool
	}{{0, false}, {4, false}, {5, true}, {100, true}} {
		w := nettracefile.New(nettracefile.Options{}).Metadata(metas...)
		w.Stacks(1, []uint64{0x1010})
		for i := range 100 {
			kind := uint32(1)
			if i < c.managed {
				kind = 2
			}
			w.Events(nettracefile.Event{Meta: metaSample, Seq: uint32(i + 1), Capture: 9, Thread: 5,
				Time: uint64(i) * 1e6, Stack: 1, Payload: payload(8, kind)})
		}
		tr := New()
		must.Do(t, tr.Read(bufio.NewReader(bytes.NewReader(w.End().Bytes()))))
		p := tr.Profile()
		if known := p.Stacks[0].CPUNanos > 0; known != c.known || (p.First == "") != c.known ||
			(tr.Missing("cpu") == "") != c.known || tr.Missing("wall") != "" ||
			p.Samples[0].CPU != (c.known && c.managed > 0) {
			t.Errorf("%d in managed code: %d ns, first %q, %q", c.managed,
				p.Stacks[0].CPUNanos, p.First, tr.Missing("cpu"))
		}
	}
}

var big = flag.Int("big", 16, "megabytes of the trace that is made and read")

// dense is a trace of samples and allocations.
func dense(size int) io.Reader {
	events := make([]nettracefile.Event, 20000)
	for i := range events {
		e := nettracefile.Event{Meta: metaSample, Seq: uint32(i + 1), Capture: 9, Thread: uint64(i%20 + 10),
			Time: uint64(i/20) * 1e6, Stack: uint32(i*7%500 + 1), Payload: payload(8, uint32(1+i%2))}
		if i%8 == 7 {
			e.Meta, e.Payload = metaTick,
				payload(8, uint32(1), uint32(0), uint16(1), uint64(102400), uintptr(1),
					"System.Collections.Generic.Node", uint32(0), uintptr(2), uint64(24))
		}
		events[i] = e
	}
	return nettracefile.Repeat(size, 30, metas, events, nil)
}

// TestBig reads a trace of -big megabytes in bounded memory.
func TestBig(t *testing.T) {
	tr, start := New(), time.Now()
	tr.Read(bufio.NewReaderSize(dense(*big<<20), 1<<16))
	took := time.Since(start)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p := tr.Profile()
	expect.Figures(t, m.Sys <= 200<<20 && p.Stats.Samples != 0,
		"%d MB in %v: %.0f MB/s, %d MB of memory, %d samples, %d stacks; %d notes", *big, took,
		float64(*big)/took.Seconds(), m.Sys>>20, p.Stats.Samples, len(p.Stacks), len(p.Stats.Notes))
}

// Events of two threads are not in the order of time. A thread that wants to suspend the others while
// they are suspended waits, so pauses do not overlap.
func TestPausesOfTwoThreads(t *testing.T) {
	w := nettracefile.New(nettracefile.Options{Version: 4, PointerSize: 8}).Metadata(metas...)
	suspend, gen0, restart := payload(8, uint32(1), uint32(1)),
		payload(8, uint32(1), uint32(0), uint32(1), uint32(0)), payload(8, uint16(1))
	w.Events(
		nettracefile.Event{Meta: metaSuspend, Capture: 5, Thread: 5, Seq: 1, Time: 40e6, Payload: suspend},
		nettracefile.Event{Meta: metaSuspend, Capture: 6, Thread: 6, Seq: 1, Time: 10e6, Payload: suspend},
		nettracefile.Event{Meta: metaGC, Capture: 6, Thread: 6, Seq: 2, Time: 11e6, Payload: gen0},
		nettracefile.Event{Meta: metaRestart, Capture: 6, Thread: 6, Seq: 3, Time: 50e6, Payload: restart},
		nettracefile.Event{Meta: metaGC, Capture: 5, Thread: 5, Seq: 2, Time: 51e6, Payload: gen0},
		nettracefile.Event{Meta: metaRestart, Capture: 5, Thread: 5, Seq: 3, Time: 80e6, Payload: restart},
	)
	tr := New()
	tr.Read(bufio.NewReader(bytes.NewReader(w.End().Bytes())))
	var sum, count int64
	for k, i := range tr.files[0].folds {
		if k.event == export.EventPause {
			sum, count = sum+tr.files[0].sums[i].sum, count+tr.files[0].sums[i].count
		}
	}
	expect.True(t, sum == 70e6 && count == 2, "%d pauses of %d ns, want 2 of 70 ms", count, sum)
}

package nettrace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

// seen is an event in the form that the tests compare.
type seen struct {
	Provider        string
	ID              uint32
	Thread, Capture uint64
	Seq, Lost       uint32
	Restart         bool
	Time            uint64
	Stack           []uint64
	StackLost       bool
	Sorted          bool
	Payload         string
	Activity        [16]byte
}

type result struct {
	Events []seen
	Points []uint64
	Lost   []nettrace.Lost
	Faults []nettrace.Reason
	Err    error
	Trace  *nettrace.Trace
	Counts nettrace.Counts
}

func read(in io.Reader) (out result) {
	r := nettrace.NewReader(in)
	for {
		kind, err := r.Next()
		if err != nil {
			out.Err, out.Trace, out.Counts = err, r.Trace(), r.Counts()
			for _, f := range r.Faults() {
				out.Faults = append(out.Faults, f.Reason)
			}
			return out
		}
		if kind == nettrace.PointKind {
			out.Points = append(out.Points, r.Point().Timestamp)
			out.Lost = append(out.Lost, r.Point().Lost...)
			continue
		}
		e := r.Event()
		out.Events = append(out.Events,
			seen{e.Meta.Provider, e.Meta.EventID, e.Thread, e.CaptureThread, e.Sequence, e.Lost, e.Restart,
				e.Timestamp, e.Stack.Append(nil), e.StackLost, e.Sorted, string(e.Payload), e.Activity})
	}
}

func readAll(b []byte) result { return read(bytes.NewReader(b)) }

type form struct {
	name string
	opt  nettracefile.Options
}

func forms() (out []form) {
	for _, version := range []int{4, 5, 6} {
		for _, size := range []int{4, 8} {
			for _, plain := range []bool{false, true} {
				out = append(out, form{fmt.Sprintf("V%d, pointers of %d, plain %v", version, size, plain),
					nettracefile.Options{Version: version, PointerSize: size,
						Plain: plain, PID: 77, Ticks: 1000}})
			}
		}
	}
	return out
}

// sample is a trace with every part of the format.
func sample(o nettracefile.Options) *nettracefile.Writer {
	w := nettracefile.New(o)
	if o.Version >= 6 {
		w.Threads(nettracefile.Thread6{Index: 5, PID: 77, TID: 5, Name: "five"},
			nettracefile.Thread6{Index: 300, PID: 77, TID: 300})
	}
	w.Metadata(nettracefile.Meta{ID: 1, Provider: "P", Event: 301, Keywords: 1 << 42, Version: 3,
		Level: 5, Opcode: 7, ExtraTag: true},
		nettracefile.Meta{ID: 2, Provider: "Ünï𝄞", Event: 302, Name: "N",
			Fields: []string{"a", "b"}, ExtraField: o.Version < 6})
	w.Stacks(1, []uint64{0x1000, 0x2000}, nil, []uint64{0x7fff0000})
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 5, Stack: 1, Time: 2000, Payload: []byte("hello")},
		nettracefile.Event{Meta: 2, Seq: 2, Thread: 5, Stack: 2, Time: 2010,
			Sorted: true, Payload: []byte("hell!")},
		nettracefile.Event{Meta: 2, Seq: 1, Thread: 300, Stack: 3, Time: 1990, Payload: nil},
		nettracefile.Event{Meta: 1, Seq: 5, Thread: 300, Stack: 3, Time: 2100, Payload: []byte{1}})
	w.Point(3000, nettracefile.ThreadSeq{Thread: 5, Seq: 2}, nettracefile.ThreadSeq{Thread: 300, Seq: 7})
	w.Stacks(9, []uint64{0x3000})
	w.Events(nettracefile.Event{Meta: 1, Seq: 3, Thread: 5, Capture: 5, Stack: 9, Time: 4000},
		nettracefile.Event{Meta: 1, Seq: 4, Thread: 300, Capture: 5, Stack: 1, Time: 4001})
	return w
}

func wantSample() []seen {
	const u = "Ünï𝄞"
	return []seen{
		{Provider: "P", ID: 301, Thread: 5, Capture: 5, Seq: 1, Time: 2000,
			Stack: []uint64{0x1000, 0x2000}, Payload: "hello"},
		{Provider: u, ID: 302, Thread: 5, Capture: 5, Seq: 2, Time: 2010, Sorted: true, Payload: "hell!"},
		{Provider: u, ID: 302, Thread: 300, Capture: 300, Seq: 1, Time: 1990, Stack: []uint64{0x7fff0000}},
		{Provider: "P", ID: 301, Thread: 300, Capture: 300, Seq: 5, Lost: 3, Time: 2100,
			Stack: []uint64{0x7fff0000}, Payload: "\x01"},
		{Provider: "P", ID: 301, Thread: 5, Capture: 5, Seq: 3, Time: 4000, Stack: []uint64{0x3000}},
		{Provider: "P", ID: 301, Thread: 300, Capture: 5, Seq: 4, Time: 4001, StackLost: true},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			raw := sample(f.opt).End().Bytes()
			got := readAll(raw)
			must.True(t, got.Err == io.EOF && slices.Equal(got.Faults, []nettrace.Reason{nettrace.NoStack}),
				"%v, %v", got.Err, got.Faults)
			must.Equal(t, cmptest.Diff(wantSample(), got.Events), "")
			pid := uint64(0)
			if f.opt.Version >= 6 {
				pid = 77
			}
			expect.True(t, slices.Equal(got.Points, []uint64{3000}) &&
				slices.Equal(got.Lost, []nettrace.Lost{{Process: pid, Thread: 300, Count: 2}}),
				"points %v, lost %v", got.Points, got.Lost)
			tr := got.Trace
			expect.True(t, tr.PointerSize == f.opt.PointerSize && tr.ProcessID == 77 && tr.Frequency == 1e9 &&
				tr.Ticks == 1000 && tr.Start.Format("2006-01-02 15:04:05.000") == "2026-11-21 22:23:24.250",
				"trace %+v", tr)
			if c := got.Counts; c.Lost != 5 || c.Events != 6 || c.Stacks != 4 || c.Points != 1 ||
				c.Metadata != 2 || c.LostStacks != 1 || c.Bytes != int64(len(raw)) {
				t.Errorf("counts %+v", c)
			}
			cmptest.Same(t, got, read(iotest.OneByteReader(bytes.NewReader(raw))), "byte by byte")
		})
	}
}

// TestTruncated truncates a trace at every byte: everything before is delivered, and the error has the offset
// of the end.
func TestTruncated(t *testing.T) {
	for _, f := range forms() {
		raw := sample(f.opt).End().Bytes()
		want, last := wantSample(), 0
		for n := range raw {
			got := readAll(raw[:n])
			var e *nettrace.Error
			if !errors.As(got.Err, &e) || e.Offset != int64(n) && e.Reason != nettrace.Empty {
				t.Fatalf("%s, cut at %d: %v", f.name, n, got.Err)
			}
			if e.Reason != nettrace.Truncated && e.Reason != nettrace.NoEnd && e.Reason != nettrace.Empty {
				t.Fatalf("%s, cut at %d: %v", f.name, n, got.Err)
			}
			d := cmptest.Diff(append([]seen(nil), want[:len(got.Events)]...), got.Events)
			must.True(t, len(got.Events) >= last && d == "",
				"%s, cut at %d: %d events after %d\n%s", f.name, n, len(got.Events), last, d)
			last = len(got.Events)
		}
		expect.Equal(t, last, len(want), "%s: events before the end mark", f.name)
	}
}

func TestBad(t *testing.T) {
	v4 := func() *nettracefile.Writer { return nettracefile.New(nettracefile.Options{}) }
	v6 := func() *nettracefile.Writer { return nettracefile.New(nettracefile.Options{Version: 6}) }
	trace := v4().Bytes()
	patch := func(at int, v ...byte) []byte {
		b := slices.Clone(trace)
		copy(b[at:], v)
		return b
	}
	const body = 32 + 19 + 5 // of the description: after header, type and name
	event := nettracefile.Event{Meta: 1, Seq: 1, Thread: 1, Time: 1}
	meta := nettracefile.Meta{ID: 1, Provider: "P", Event: 1}
	for _, c := range []struct {
		name   string
		in     []byte
		end    nettrace.Reason // NoReason: a complete trace
		fault  nettrace.Reason
		events int
	}{
		{"empty", nil, nettrace.Empty, 0, 0},
		{"magic only", []byte("Nettrace"), nettrace.Truncated, 0, 0},
		{"netperf", []byte("\x14\x00\x00\x00!FastSerialization.1"), nettrace.NoEnd, 0, 0},
		{"gzip", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), nettrace.NotNettrace, 0, 0},
		{"zip", []byte("PK\x03\x04aaaaaaaa"), nettrace.NotNettrace, 0, 0},
		{"swapped magic", []byte("ecartteN\x00\x00"), nettrace.NotNettrace, 0, 0},
		{"text", []byte("hello, world"), nettrace.NotNettrace, 0, 0},
		{"swapped length", patch(8, 0, 0, 0, 20), nettrace.NotNettrace, 0, 0},
		{"another serialization", patch(12, '?'), nettrace.NotNettrace, 0, 0},
		{"a tag", patch(32, 9), nettrace.BadFraming, 0, 0},
		{"a name of 4 GB", patch(32+11, 255, 255, 255, 255), nettrace.BadFraming, 0, 0},
		{"newer reader", patch(32+7, 9), nettrace.TooNew, 0, 0},
		{"pointers of 3", patch(body+32, 3), nettrace.BadTrace, 0, 0},
		{"frequency 0", patch(body+24, 0, 0, 0, 0, 0, 0, 0, 0), nettrace.BadTrace, 0, 0},
		{"frequency below 0", patch(body+31, 255), nettrace.BadTrace, 0, 0},
		{"a block before the description",
			slices.Concat(trace[:32], v4().Metadata(meta).Bytes()[len(trace):]), nettrace.BadFraming, 0, 0},
		{"two descriptions", slices.Concat(trace, trace[32:]), nettrace.BadTrace, 0, 0},
		{"a block of 4 GB", v4().Raw(5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0,
			0).Raw([]byte("SPBlock\x06\xff\xff\xff\xff")...).Bytes(), nettrace.BadSize, 0, 0},
		{"a swapped size", v4().Raw(5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0,
			0).Raw([]byte("SPBlock\x06\x00\x00\x01\x00\x10")...).Bytes(),
			nettrace.Truncated, nettrace.BadPadding, 0},
		{"empty block", v4().Block("EventBlock", nil).End().Bytes(), 0, nettrace.BadBlock, 0},
		{"header below 20", v4().Block("EventBlock", make([]byte, 40)).End().Bytes(), 0,
			nettrace.BadBlock, 0},
		{"header above its block",
			v4().Block("EventBlock", append([]byte{200, 0}, make([]byte, 40)...)).End().Bytes(), 0,
			nettrace.BadBlock, 0},
		{"unknown block", v4().Block("Novel", []byte("abc")).Metadata(meta).Events(event).End().Bytes(), 0,
			nettrace.UnknownBlock, 1},
		{"unknown block, version 6",
			v6().Threads(nettracefile.Thread6{Index: 1, TID: 1}).Block6(99,
				[]byte("abc")).Metadata(meta).Events(event).End().Bytes(), 0, nettrace.UnknownBlock, 1},
		{"label lists, version 6",
			v6().Threads(nettracefile.Thread6{Index: 1, TID: 1}).Block6(8,
				[]byte("abc")).Metadata(meta).Events(event).End().Bytes(), 0, 0, 1},
		{"version 7", []byte("Nettrace\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00"),
			nettrace.TooNew, 0, 0},
		{"version 5 with a header of 6",
			[]byte("Nettrace\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00"), nettrace.NotNettrace, 0, 0},
		{"a thread never described",
			v6().Metadata(meta).Events(event).End().Bytes(), 0, nettrace.NoThread, 1},
		{"a kind never described", v4().Events(event).End().Bytes(), 0, nettrace.NoMetadata, 1},
		{"a long number", v4().Metadata(meta).Block("EventBlock",
			append(head(), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 1)).Events(event).End().Bytes(), 0,
			nettrace.BadEvent, 1},
		{"a number without end",
			v4().Metadata(meta).Block("EventBlock",
				append(head(), 0, 0x80, 0x80)).Events(event).End().Bytes(), 0, nettrace.BadEvent, 1},
		{"a payload past its block",
			v4().Metadata(meta).Block("EventBlock",
				append(head(), 128, 0, 100, 1, 2, 3)).Events(event).End().Bytes(), 0, nettrace.BadEvent, 1},
		{"a stack that is not whole",
			v4().Block("StackBlock", []byte{1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3}).End().Bytes(), 0,
			nettrace.BadStacks, 0},
		{"a stack past its block",
			v4().Block("StackBlock",
				[]byte{1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 1, 2, 3}).End().Bytes(), 0,
			nettrace.BadStacks, 0},
		{"4 G threads", v4().Block("SPBlock",
			[]byte{1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255}).End().Bytes(), 0, nettrace.BadPoint, 0},
		{"a name without a zero",
			v4().Block("MetadataBlock", append(head(), 128, 0, 7, 1, 0, 0, 0, 'a', 0, 'b')).End().Bytes(), 0,
			nettrace.BadMetadata, 0},
		{"bytes after the end", v4().End().Raw(1, 2, 3).Bytes(), 0, nettrace.Trailing, 0},
		{"two traces", slices.Concat(v4().Metadata(meta).Events(event).End().Bytes(), trace), 0,
			nettrace.Trailing, 1},
		{"no end mark", v4().Metadata(meta).Events(event).Bytes(), nettrace.NoEnd, 0, 1},
		{"no end mark, version 6", v6().Bytes(), nettrace.NoEnd, 0, 0},
		{"block of version 6 before the description",
			[]byte("Nettrace\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"),
			nettrace.BadFraming, 0, 0},
		{"a bad row, version 6",
			v6().Block6(3, []byte{0, 0, 2, 0, 1, 9}).End().Bytes(), 0, nettrace.BadMetadata, 0},
		{"a bad thread, version 6",
			v6().Block6(6, []byte{2, 0, 1, 1, 9}).End().Bytes(), 0, nettrace.BadThreads, 0},
	} {
		got := readAll(c.in)
		var e *nettrace.Error
		if c.end == 0 && got.Err != io.EOF || c.end != 0 && (!errors.As(got.Err, &e) || e.Reason != c.end) {
			t.Errorf("%s: %v, want %v", c.name, got.Err, c.end)
		}
		if c.fault != 0 && !slices.Contains(got.Faults, c.fault) || c.fault == 0 && len(got.Faults) > 0 {
			t.Errorf("%s: faults %v, want %v", c.name, got.Faults, c.fault)
		}
		expect.Equal(t, len(got.Events), c.events, "%s: events", c.name)
		if e != nil && (strings.Contains(e.Error(), "\n") || !strings.Contains(e.Error(), "offset")) {
			t.Errorf("%s: %q is no clear line", c.name, e.Error())
		}
	}
}

// head is that of a block of compressed events.
func head() []byte { return append([]byte{20, 0, 1, 0}, make([]byte, 16)...) }

func TestPadding(t *testing.T) {
	empty := make([]byte, 8) // the second block begins where it needs padding
	raw := nettracefile.New(nettracefile.Options{}).Block("StackBlock", empty).Block("StackBlock",
		empty).End().Bytes()
	i := bytes.LastIndex(raw, []byte("StackBlock")) + len("StackBlock") + 1 + 4
	must.True(t, i%4 != 0, "the second block needs no padding")
	raw[i] = 1
	got := readAll(raw)
	expect.True(t, got.Err == io.EOF && slices.Equal(got.Faults, []nettrace.Reason{nettrace.BadPadding}),
		"%v %v", got.Err, got.Faults)
}

func TestSequence(t *testing.T) {
	for _, c := range []struct {
		name     string
		seqs     []uint32
		lost     []uint32
		restarts []bool
	}{
		{"whole", []uint32{1, 2, 3}, []uint32{0, 0, 0}, []bool{false, false, false}},
		{"began late", []uint32{4, 5}, []uint32{3, 0}, []bool{false, false}},
		{"gap", []uint32{1, 5, 6}, []uint32{0, 3, 0}, []bool{false, false, false}},
		{"the id is used again", []uint32{1, 2, 1, 2}, []uint32{0, 0, 0, 0},
			[]bool{false, false, true, false}},
		{"used again, its first events lost", []uint32{1, 200, 3},
			[]uint32{0, 198, 2}, []bool{false, false, true}},
	} {
		w := nettracefile.New(nettracefile.Options{}).Metadata(nettracefile.Meta{ID: 1,
			Provider: "P", Event: 1})
		for _, s := range c.seqs {
			w.Events(nettracefile.Event{Meta: 1, Seq: s, Thread: 9, Time: 5})
		}
		got := readAll(w.End().Bytes())
		for i, e := range got.Events {
			expect.True(t, e.Lost == c.lost[i] && e.Restart == c.restarts[i],
				"%s, event %d: lost %d, restart %v", c.name, i, e.Lost, e.Restart)
		}
	}
}

// TestThreads6: numbers belong to the system's thread, whatever its index.
func TestThreads6(t *testing.T) {
	const flush = 1
	thread := func(index, pid, tid uint64) nettracefile.Thread6 {
		return nettracefile.Thread6{Index: index, PID: pid, TID: tid}
	}
	for _, c := range []struct {
		name     string
		between  func(w *nettracefile.Writer)
		index    uint64 // of the event after
		seq      uint32
		lost     uint32
		restart  bool
		reported int64
	}{
		{"nothing happens", func(w *nettracefile.Writer) {}, 3, 3, 0, false, 0},
		{"threads are removed and reported again",
			func(w *nettracefile.Writer) { w.PointFlags(7, flush).Threads(thread(3, 1, 77)) }, 3, 3,
			0, false, 0},
		{"reported again under another index",
			func(w *nettracefile.Writer) { w.PointFlags(7, flush).Threads(thread(4, 1, 77)) }, 4, 3,
			0, false, 0},
		{"reported again, events lost in between",
			func(w *nettracefile.Writer) { w.PointFlags(7, flush).Threads(thread(4, 1, 77)) }, 4, 9,
			6, false, 6},
		{"removed, its id used again", func(w *nettracefile.Writer) {
			w.Remove(nettracefile.ThreadSeq{Thread: 3, Seq: 2}).Threads(thread(4, 1, 77))
		}, 4, 1, 0, true, 0},
		{"removed, its id used again by another process", func(w *nettracefile.Writer) {
			w.Remove(nettracefile.ThreadSeq{Thread: 3, Seq: 2}).Threads(thread(4, 2, 77))
		}, 4, 1, 0, false, 0},
		{"removed with events lost", func(w *nettracefile.Writer) {
			w.Remove(nettracefile.ThreadSeq{Thread: 3, Seq: 9}).Threads(thread(4, 2, 77))
		}, 4, 1, 0, false, 7},
		{"the index is used again without a word",
			func(w *nettracefile.Writer) { w.Threads(thread(3, 1, 78)) }, 3, 1, 0, false, 0},
		{"a point before the threads are forgotten", func(w *nettracefile.Writer) {
			w.PointFlags(7, flush, nettracefile.ThreadSeq{Thread: 3, Seq: 4}).Threads(thread(3, 1, 77))
		}, 3, 5, 0, false, 2},
	} {
		w := nettracefile.New(nettracefile.Options{Version: 6}).Threads(thread(3, 1,
			77)).Metadata(nettracefile.Meta{ID: 1, Provider: "P", Event: 1})
		w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 3, Time: 5},
			nettracefile.Event{Meta: 1, Seq: 2, Thread: 3, Time: 6})
		c.between(w)
		w.Events(nettracefile.Event{Meta: 1, Seq: c.seq, Thread: c.index, Time: 8})
		got := readAll(w.End().Bytes())
		must.True(t, len(got.Faults) == 0 && len(got.Events) == 3,
			"%s: %v, %d events", c.name, got.Faults, len(got.Events))
		if e := got.Events[2]; e.Lost != c.lost || e.Restart != c.restart || got.Counts.Lost != c.reported {
			t.Errorf("%s: lost %d, restart %v, %+v", c.name, e.Lost, e.Restart, got.Counts)
		}
	}
}

// TestTwoIndices6: a writer may give a thread several indices. Sequence numbers belong to the index
// (NetTraceFormat.md, Uncompressed events and ThreadBlock).
func TestTwoIndices6(t *testing.T) {
	const flush = 1
	w := nettracefile.New(nettracefile.Options{Version: 6})
	both := []nettracefile.Thread6{{Index: 3, PID: 1, TID: 77}, {Index: 4, PID: 1, TID: 77}}
	w.Threads(both...).Metadata(nettracefile.Meta{ID: 1, Provider: "P", Event: 1})
	event := func(index uint64, seq uint32) {
		w.Events(nettracefile.Event{Meta: 1, Seq: seq, Thread: index, Time: 5})
	}
	for seq := range uint32(3) {
		event(3, seq+1)
		event(4, seq+1)
	}
	w.PointFlags(7, flush, nettracefile.ThreadSeq{Thread: 3, Seq: 3},
		nettracefile.ThreadSeq{Thread: 4, Seq: 4})
	w.Threads(both[1], both[0])
	event(4, 5)
	event(3, 4)
	w.Remove(nettracefile.ThreadSeq{Thread: 4, Seq: 5})
	w.Threads(nettracefile.Thread6{Index: 4, PID: 1, TID: 78})
	event(4, 1)
	got := readAll(w.End().Bytes())
	must.True(t, len(got.Faults) == 0 && len(got.Events) == 9, "%v, %d events", got.Faults, len(got.Events))
	for i, e := range got.Events {
		expect.True(t, e.Lost == 0 && !e.Restart, "event %d: lost %d, restart %v", i, e.Lost, e.Restart)
	}
	want := []nettrace.Lost{{Process: 1, Thread: 77, Count: 1}}
	expect.True(t, got.Counts.Lost == 1 && slices.Equal(got.Lost, want), "%d lost, %v", got.Counts.Lost,
		got.Lost)
}

// TestSequenceWrap: counters continue at zero after 2^32-1.
func TestSequenceWrap(t *testing.T) {
	w := nettracefile.New(nettracefile.Options{}).Metadata(nettracefile.Meta{ID: 1, Provider: "P", Event: 1})
	for _, s := range []uint32{1, 1 << 30, 2 << 30, 3 << 30, 0xffffffff, 0, 1} {
		w.Events(nettracefile.Event{Meta: 1, Seq: s, Thread: 9, Time: 5})
	}
	got := readAll(w.End().Bytes())
	expect.True(t, got.Counts.Restarts == 0 && got.Events[5].Lost == 0 && got.Events[6].Lost == 0 &&
		got.Counts.Lost == 1<<32-1-5, "%+v", got.Counts)
}

// TestNanos converts timestamps of any clock, without overflow.
func TestNanos(t *testing.T) {
	for _, c := range []struct {
		name      string
		frequency uint64
		ticks     uint64
		want      int64
	}{
		{"Linux", 1e9, 1234567891, 1234567891},
		{"Windows", 1e7, 12345678, 1234567800},
		{"a processor's own", 2_994_372_000, 2_994_372_000*3 + 1_497_186_000, 3_500_000_000},
		{"odd", 3, 10, 3_333_333_333},
		{"a thousand years of Windows", 1e7, 1e7 * 86400 * 365 * 1000, 1<<63 - 1},
		{"all bits", 1e9, 1<<64 - 1, 1<<63 - 1},
		{"all bits of one a second", 1, 1<<64 - 1, 1<<63 - 1},
		{"faster than it may be", 1<<63 - 1, 1<<63 - 1, 1e9},
	} {
		tr := nettrace.Trace{Frequency: c.frequency}
		expect.Equal(t, tr.Nanos(c.ticks), c.want, c.name)
	}
}

package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

func every() []Message {
	return []Message{
		&Hello{Version: Version, PID: 77, Arch: "amd64", Runtime: "CoreCLR 9.0.5",
			StartUnixNano: 1_700_000_000_000_000_000, RateMilliHz: 99_500},
		&Module{ID: 1, Start: 0x7f00_0000_0000, End: 0x7f00_0010_0000, Bias: 0x7f00_0000_0000,
			Path: "/usr/lib/libc.so.6", BuildID: "00ff"},
		&Method{ID: 9, FunctionID: 1<<64 - 1, Name: "A.B.<C>d__1.MoveNext", Module: "A"},
		&Line{Addr: 1<<64 - 2, File: "/src/A.cs", Line: 1<<32 - 1},
		&Thread{TID: 1234, Name: "worker"},
		&GapName{Code: 3, Name: "no-info"},
		&Sample{TID: 1234, TimeUnixNano: 5, WallNanos: 10, CPUNanos: 11, Verdict: 2,
			HRESULT: 0x80131360, Gap: 3, Frames: []Frame{
				{Kind: unwind.KindNative, Trust: unwind.TrustContext, Flags: FrameExact,
					Module: 1, IP: 0x7f00_0000_1234},
				{Kind: unwind.KindGap, Gap: 3},
				{Kind: unwind.KindManaged, Trust: unwind.TrustCLR, Method: 9, IP: 1<<64 - 1},
				{Kind: 250, Trust: 251, Gap: 252, Flags: 253, Module: 1<<32 - 1,
					Method: 1<<32 - 1, IP: 1 << 63},
			}},
		&Sample{TID: 1}, &Sample{TID: 2, Frames: []Frame{{Kind: unwind.KindAsync, Method: 3}},
			Activity: Activity{Trace: [16]byte{1, 15: 16}, Span: [8]byte{2, 7: 8}}},
		&Usage{TID: 1234, CPUNanos: 1<<64 - 1, KernelNanos: 1 << 40, Cause: CauseNoRoom},
		&Usage{},
		&Dropped{Kind: EventAllocation, Name: "System.Byte[]", Count: 7, Bytes: 1<<64 - 1},
		&Dropped{},
		&Stats{Key: "retries", Value: 1 << 63},
		&Note{Text: "hello\nworld"},
		&Event{TID: 1234, TimeUnixNano: 6, Kind: EventLock, Flags: EventOpen, Nanos: 1 << 62, Bytes: 3,
			Owner: 4, Lock: 1<<64 - 1, Name: "A+B", Text: "c", Gap: 5,
			Frames: []Frame{{Kind: unwind.KindManaged, Method: 9, IP: 3}}},
		&Event{TID: 1, Kind: EventException},
		&Bye{},
	}
}

func write(w *Writer, ms []Message) {
	for _, m := range ms {
		w.Message(m)
	}
}

func encode(ms ...Message) []byte {
	w := NewWriter(nil)
	write(w, ms)
	return w.Bytes()
}

func readAll(b []byte) (ms []Message, err error) {
	r := NewReader(bytes.NewReader(b))
	for {
		m, err := r.Next()
		if err != nil {
			return ms, err
		}
		ms = append(ms, m)
	}
}

func TestRoundTrip(t *testing.T) {
	want := every()
	got, err := readAll(encode(want...))
	must.True(t, err == io.EOF, "end: %v, want io.EOF", err)
	if cmptest.Diff(want, got) != "" {
		for i := range got {
			t.Errorf("message %d: got %+v want %+v", i, got[i], want[i])
		}
		t.Fatalf("got %d messages, want %d", len(got), len(want))
	}
}

// Cut at every byte: all messages that are whole come out, then the right end.
func TestTruncated(t *testing.T) {
	ms := every()
	all := encode(ms...)
	whole := map[int]int{0: 0}
	for i := range ms {
		whole[len(encode(ms[:i+1]...))] = i + 1
	}
	count := 0
	for cut := 0; cut <= len(all); cut++ {
		want := io.ErrUnexpectedEOF
		if n, ok := whole[cut]; ok {
			count, want = n, io.EOF
		}
		got, err := readAll(all[:cut])
		must.True(t, len(got) == count && err == want,
			"cut at %d: %d messages and %v, want %d and %v", cut, len(got), err, count, want)
	}
}

// TestParseTruncated: bytes that end anywhere inside a message are too few, and no damage. A longer form of a
// length than Reader accepts is damage for Parse, too.
func TestParseTruncated(t *testing.T) {
	for _, m := range append(every(), &Note{Text: strings.Repeat("x", 200)}) {
		b := encode(m)
		got, size, err := Parse(append(b, 1))
		must.True(t, err == nil && size == len(b) && cmptest.Diff(m, got) == "", "%v, %d bytes", err, size)
		for cut := range b {
			_, _, err := Parse(b[:cut])
			expect.True(t, err == io.ErrUnexpectedEOF, "%s cut at %d of %d: %v", m.Type(), cut, len(b), err)
		}
	}
	var damage *FormatError
	_, _, err := Parse([]byte{byte(TypeBye), 0x82, 0x80, 0x80, 0, 1, 'b'})
	expect.True(t, errors.As(err, &damage) && damage.Field == "payload length", "%v", err)
}

func TestUnknownIsSkipped(t *testing.T) {
	b := encode(&Note{Text: "a"})
	b = append(b, 200, 3, 'x', 'y', 'z', 0, 0)
	longer := append([]byte{byte(TypeBye), 4, 1, 'b'}, 9, 9) // two bytes this version does not know
	b = append(b, longer...)
	r := NewReader(bytes.NewReader(b))
	first, err1 := r.Next()
	second, err2 := r.Next()
	must.True(t, err1 == nil && err2 == nil, "%v %v", err1, err2)
	must.True(t, first.(*Note).Text == "a" && second.(*Bye).Reason == "b", "got %v %v", first, second)
}

func TestMalformed(t *testing.T) {
	cases := []struct {
		name  string
		in    []byte
		field string
	}{
		{"length of four bytes", []byte{7, 0x80, 0x80, 0x80, 0}, "payload length"},
		{"string longer than payload", []byte{7, 2, 5, 'a'}, "Text"},
		{"string beyond the limit", []byte{7, 4, 0xff, 0xff, 0x7f, 'a'}, "Text"},
		{"no field at all", []byte{7, 0}, "Text"},
		{"id of 33 bits", []byte{3, 5, 0x80, 0x80, 0x80, 0x80, 0x10}, "ID"},
		{"gap code of nine bits", []byte{9, 3, 0x80, 0x02, 0}, "Code"},
		{"cause of nine bits", []byte{12, 5, 1, 2, 0, 0x80, 0x02}, "Cause"},
		{"usage without a cause", []byte{12, 3, 1, 2, 0}, "Cause"},
		{"integer of 65 bits", append([]byte{4, 11}, bytes.Repeat([]byte{0xff}, 11)...), "TID"},
		{"more frames than bytes", []byte{5, 15, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, "frame count"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAll(c.in)
			var fe *FormatError
			must.True(t, errors.As(err, &fe) && fe.Field == c.field && fe.Message == Type(c.in[0]),
				"got %v, want a FormatError at %s", err, c.field)
		})
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	_, err := readAll(encode(&Hello{Version: Version + 1}))
	var ve *VersionError
	must.True(t, errors.As(err, &ve) && ve.Got == Version+1, "got %v", err)
	got, err := readAll(encode(&Hello{}))
	must.True(t, err == io.EOF && got[0].(*Hello).Version == Version,
		"version 0 is not filled in: %v %v", got, err)
}

func TestWriterCuts(t *testing.T) {
	long := strings.Repeat("n", MaxString+5)
	got, err := readAll(encode(&Note{Text: long}, &Sample{Frames: make([]Frame, MaxFrames+1)},
		&Sample{Gap: 4, Frames: make([]Frame, MaxFrames+1)}))
	must.Equal(t, err, io.EOF)
	expect.Equal(t, len(got[0].(*Note).Text), MaxString, "bytes of the string")
	for i, gap := range []uint8{GapCut, 4} {
		s := got[1+i].(*Sample)
		expect.True(t, len(s.Frames) == MaxFrames && s.Gap == gap,
			"%d frames, gap %d, want gap %d", len(s.Frames), s.Gap, gap)
	}
}

// The longest possible sample must stay below MaxPayload.
func TestLongestPayload(t *testing.T) {
	frames := make([]Frame, MaxFrames)
	for i := range frames {
		frames[i] = Frame{Module: 1<<32 - 1, Method: 1<<32 - 1, IP: uint64(i%2) << 63}
	}
	got, err := readAll(encode(&Sample{Frames: frames}))
	must.True(t, err == io.EOF && len(got) == 1, "%v %v", len(got), err)
	must.Equal(t, cmptest.Diff(frames, got[0].(*Sample).Frames), "", "frames differ")
}

func TestWriterDoesNotAllocate(t *testing.T) {
	w := NewWriter(make([]byte, 0, 1<<12))
	ms := every()
	must.Equal(t, testing.AllocsPerRun(100, func() { w.Reset(); write(w, ms) }), 0, "allocations")
}

// A counter that has not changed is not repeated.
func TestCounter(t *testing.T) {
	w := NewWriter(nil)
	for _, step := range []struct {
		key   string
		value uint64
		sent  bool
	}{{"a", 0, true}, {"a", 0, false}, {"b", 0, true}, {"a", 1, true}, {"a", 1, false}, {"a", 0, true}} {
		w.Reset()
		w.Counter(step.key, step.value)
		expect.Equal(t, w.Len() > 0, step.sent, "%s %d: sent", step.key, step.value)
	}
	w.Reset()
	w.Message(&Stats{Key: "a"})
	expect.Equal(t, w.Len() > 0, true, "a message is sent")
}

func TestErrorSticks(t *testing.T) {
	b := append([]byte{7, 0}, encode(&Bye{})...)
	r := NewReader(bytes.NewReader(b))
	_, err1 := r.Next()
	_, err2 := r.Next()
	must.True(t, err1 != nil && err1 == err2, "%v then %v", err1, err2)
}

func TestBuckets(t *testing.T) {
	last := -1
	for _, v := range []uint64{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 1000, 1 << 20,
		1<<63 - 1, 1 << 63, 1<<64 - 1} {
		i := bucket(v)
		if i < last || upper(i) < v || (v > 8 && upper(i)-v > v/8) {
			t.Errorf("value %d: bucket %d up to %d", v, i, upper(i))
		}
		if bucket(upper(i)) != i || (upper(i) != 1<<64-1 && bucket(upper(i)+1) != i+1) {
			t.Errorf("bucket %d does not end at %d", i, upper(i))
		}
		last = i
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	expect.Equal(t, h.Quantile(0.5), 0, "empty")
	for v := uint64(1); v <= 1000; v++ {
		h.Add(v * 1000)
	}
	for _, c := range []struct {
		q    float64
		want uint64
	}{{0, 1000}, {0.5, 501_000}, {0.99, 991_000}, {1, 1_000_000}} {
		if got := h.Quantile(c.q); got < c.want || got > c.want+c.want/8 || got > h.Max() {
			t.Errorf("quantile %v: %d, want %d to an eighth more", c.q, got, c.want)
		}
	}
}

func TestHistogramTravels(t *testing.T) {
	var a, b, sum Histogram
	w := NewWriter(nil)
	for i, v := range []uint64{3, 900, 1_600_000, 33_000_000} {
		a.Add(v)
		if i == 1 {
			a.Write(w, StatSuspended) // totals are sent again and again
		}
	}
	a.Write(w, StatSuspended)
	w.Stats(StatRetries, 5)
	r := NewReader(bytes.NewReader(w.Bytes()))
	others := 0
	for {
		m, err := r.Next()
		if err == io.EOF {
			break
		}
		must.Do(t, err)
		if !b.Set(StatSuspended, m.(*Stats)) {
			others++
		}
	}
	must.True(t, a == b && others == 1, "count %d max %d, %d others", b.Count(), b.Max(), others)
	sum.Merge(&a)
	sum.Merge(&b)
	must.True(t, sum.Count() == 8 && sum.Max() == 33_000_000, "%v %v", sum.Count(), sum.Max())
}

func TestAddDoesNotAllocate(t *testing.T) {
	var h Histogram
	must.Equal(t, testing.AllocsPerRun(100, func() { h.Add(123456) }), 0)
}

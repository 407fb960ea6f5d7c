package nettrace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

const (
	runtimeProvider = "Microsoft-Windows-DotNETRuntime"
	zeroProvider    = "00000000-0000-0000-0000-000000000000"
)

// netperf returns a trace of version 1, 2, or 3, and its events.
func netperf(o nettracefile.Options) (*nettracefile.Writer, []seen) {
	w := nettracefile.New(o)
	w.Metadata(nettracefile.Meta{ID: 1, Provider: runtimeProvider, Event: 10, Version: 3},
		nettracefile.Meta{ID: 2, Provider: "Own", Event: 7, Name: "Ordered", Keywords: 9, Level: 4,
			Fields: []string{"a"}, ExtraField: true})
	w.Stacks(1, []uint64{0x1000, 0x2000}, []uint64{0x7fff0000})
	w.Events(nettracefile.Event{Meta: 1, Thread: 5, Time: 2000, Stack: 1,
		Payload: []byte("hello"), Activity: [16]byte{1}},
		nettracefile.Event{Meta: 2, Thread: 0xfffffffe, Time: 2010, Stack: 2})
	w.Metadata(nettracefile.Meta{ID: 3, Provider: "Own", Event: 8})
	w.Events(nettracefile.Event{Meta: 3, Thread: 5, Time: 2020, Payload: []byte("x")})
	own := "Own"
	if o.Version == 1 {
		own = zeroProvider
	}
	return w, []seen{
		{Provider: runtimeProvider, ID: 10, Thread: 5, Capture: 5, Time: 2000,
			Stack: []uint64{0x1000, 0x2000}, Sorted: true, Payload: "hello", Activity: [16]byte{1}},
		{Provider: own, ID: 7, Thread: 0xfffffffe, Capture: 0xfffffffe, Time: 2010,
			Stack: []uint64{0x7fff0000}, Sorted: true},
		{Provider: own, ID: 8, Thread: 5, Capture: 5, Time: 2020, Sorted: true, Payload: "x"},
	}
}

func netperfForms() (out []form) {
	for _, version := range []int{1, 2, 3} {
		out = append(out, form{fmt.Sprintf("V%d", version),
			nettracefile.Options{Version: version, Ticks: 1000, PID: 77}})
	}
	return append(out, form{"V3, pointers of 4",
		nettracefile.Options{Version: 3, PointerSize: 4, Ticks: 1000, PID: 77}})
}

// TestNetperf reads versions 1 to 3, complete and truncated at every byte.
func TestNetperf(t *testing.T) {
	for _, f := range netperfForms() {
		w, want := netperf(f.opt)
		raw := bytes.Clone(w.End().Bytes())
		got := readAll(raw)
		must.True(t, got.Err == io.EOF && len(got.Faults) == 0, "%s: %v, %v", f.name, got.Err, got.Faults)
		cmptest.Same(t, want, got.Events, f.name)
		pid, size := 77, f.opt.PointerSize
		if f.opt.Version < 3 {
			pid = 0
		}
		if size == 0 {
			size = 8
		}
		if tr, c := got.Trace, got.Counts; tr.Version != f.opt.Version || tr.ProcessID != pid ||
			tr.PointerSize != size || tr.Ticks != 1000 ||
			tr.Start.Day() != 21 || c.Events != 3 || c.Metadata != 3 || c.Stacks != 2 || c.Lost != 0 ||
			c.Bytes != int64(len(raw)) {
			t.Errorf("%s: %+v, %+v", f.name, tr, c)
		}
		cmptest.Same(t, got, read(iotest.OneByteReader(bytes.NewReader(raw))), "%s, byte by byte", f.name)
		for n := range raw {
			got := readAll(raw[:n])
			var e *nettrace.Error
			if !errors.As(got.Err, &e) ||
				e.Reason != nettrace.Truncated && e.Reason != nettrace.NoEnd && e.Reason != nettrace.Empty ||
				len(got.Faults) > 0 {
				t.Fatalf("%s, cut at %d: %v, %v", f.name, n, got.Err, got.Faults)
			}
			must.Equal(t, cmptest.Diff(append([]seen(nil), want[:len(got.Events)]...), got.Events), "",
				"%s, cut at %d", f.name, n)
		}
		for n := range raw { // damaged: no panic, no endless loop
			raw[n] ^= 0xff
			readAll(raw)
			raw[n] ^= 0xff
		}
	}
}

// TestNetperfBad: damage inside a trace of version 1 to 3 is reported.
func TestNetperfBad(t *testing.T) {
	old := func() *nettracefile.Writer { return nettracefile.New(nettracefile.Options{Version: 2}) }
	v3 := func() *nettracefile.Writer { return nettracefile.New(nettracefile.Options{Version: 3}) }
	v4 := nettracefile.New(nettracefile.Options{}).Bytes()
	meta := nettracefile.Meta{ID: 1, Provider: "P", Event: 1, Name: "N"}
	event := nettracefile.Event{Meta: 1, Thread: 1, Time: 1}
	for _, c := range []struct {
		name   string
		in     []byte
		end    nettrace.Reason // NoReason: a complete trace
		fault  nettrace.Reason
		events int
	}{
		{"an event of 4 GB", old().Metadata(meta).Events(event).Raw(bytes.Repeat([]byte{255}, 64)...).Bytes(),
			nettrace.BadSize, 0, 1},
		{"an event of 3 bytes", old().Raw(3, 0, 0, 0, 1, 2, 3).Bytes(), nettrace.BadSize, 0, 0},
		{"a payload past its event",
			old().Raw(append([]byte{56, 0, 0, 0},
				bytes.Repeat([]byte{255}, 56)...)...).Metadata(meta).Events(event).End().Bytes(), 0,
			nettrace.BadEvent, 1},
		{"a kind never described", old().Events(event).End().Bytes(), 0, nettrace.NoMetadata, 1},
		{"a kind never described, version 3", v3().Events(event).End().Bytes(), 0, nettrace.NoMetadata, 1},
		{"a damaged description",
			v3().Metadata(nettracefile.Meta{Provider: "P"}).End().Bytes(), 0, nettrace.BadMetadata, 0},
		{"a stack of 3 bytes", v3().Metadata(meta).Block("EventBlock",
			append(append([]byte{59, 0, 0, 0, 1}, make([]byte, 51)...), 3, 0, 0, 0, 1, 2, 3)).End().Bytes(),
			0, nettrace.BadStacks, 1},
		{"no end mark", old().Metadata(meta).Events(event).Bytes(), nettrace.NoEnd, 0, 1},
		{"a block of 4 GB", v3().Raw(4, 4, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0,
			0).Raw([]byte("SPBlock\x06\xff\xff\xff\xff")...).Bytes(), nettrace.BadSize, 0, 0},
		{"version 4 without its magic", v4[8:], nettrace.BadFraming, 0, 0},
		{"version 3 with the magic of 4",
			append([]byte("Nettrace"), v3().Bytes()...), nettrace.BadFraming, 0, 0},
	} {
		got := readAll(c.in)
		var e *nettrace.Error
		if c.end == 0 && got.Err != io.EOF || c.end != 0 && (!errors.As(got.Err, &e) || e.Reason != c.end) {
			t.Errorf("%s: %v, want %v", c.name, got.Err, c.end)
		}
		if c.fault != 0 != (len(got.Faults) == 1) || c.fault != 0 && got.Faults[0] != c.fault ||
			len(got.Events) != c.events {
			t.Errorf("%s: %d events, faults %v, want %d and %v", c.name, len(got.Events),
				got.Faults, c.events, c.fault)
		}
		if e != nil && (strings.Contains(e.Error(), "\n") || !strings.Contains(e.Error(), "offset")) {
			t.Errorf("%s: %q is no clear line", c.name, e.Error())
		}
	}
}

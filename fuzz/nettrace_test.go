package fuzz

import (
	"bytes"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// smallTrace has every block of a version.
func smallTrace(o nettracefile.Options) []byte {
	w := nettracefile.New(o)
	if o.Version >= 6 {
		w.Threads(nettracefile.Thread6{Index: 1, PID: 7, TID: 70},
			nettracefile.Thread6{Index: 2, PID: 7, TID: 71, Name: "two"})
	}
	w.Metadata(nettracefile.Meta{ID: 1, Provider: "Microsoft-Windows-DotNETRuntime", Event: 301,
		Version: 0, Level: 5, Opcode: 1},
		nettracefile.Meta{ID: 2, Provider: "Microsoft-Windows-DotNETRuntime", Event: 302})
	w.Stacks(1, []uint64{1, 2, 3}, nil)
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 1, Stack: 1, Time: 10, Payload: make([]byte, 11)},
		nettracefile.Event{Meta: 2, Seq: 2, Thread: 1, Stack: 2, Time: 20,
			Payload: make([]byte, 2), Sorted: true})
	w.Point(30, nettracefile.ThreadSeq{Thread: 1, Seq: 2}, nettracefile.ThreadSeq{Thread: 2, Seq: 4})
	if o.Version >= 6 {
		w.Remove(nettracefile.ThreadSeq{Thread: 2, Seq: 9})
	}
	return w.End().Bytes()
}

// FuzzNettrace reads any bytes as a trace: reading ends, holds no more than
// came and its limits allow, and says where it ended.
func FuzzNettrace(f *testing.F) {
	for _, v := range []int{4, 5, 6} {
		for _, plain := range []bool{false, true} {
			f.Add(smallTrace(nettracefile.Options{Version: v, Plain: plain}))
			f.Add(smallTrace(nettracefile.Options{Version: v, Plain: plain, PointerSize: 4}))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := nettrace.NewReader(bytes.NewReader(in))
		things := 0
		for {
			kind, err := r.Next()
			if err != nil {
				e, ours := err.(*nettrace.Error)
				if err != io.EOF && (!ours || e.Offset < 0 || e.Offset > int64(len(in))) {
					t.Fatalf("%v of %d bytes", err, len(in))
				}
				break
			}
			if things++; things > len(in) {
				t.Fatalf("%d events and points in %d bytes", things, len(in))
			}
			if kind == nettrace.EventKind {
				r.Event().Stack.Append(nil)
			}
		}
		must.True(t, r.Held() <= 8*len(in)+(1<<20)+4096, "%d bytes held for %d", r.Held(), len(in))
	})
}

// FuzzEvents: payloads of the events that a probe copies, which may be cut anywhere.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x10\x11\x12\x13\x14\x15\x16\x17\x20\x21\x22\x23\x24\x25\x26\x27A\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04"), uint32(4))
	f.Add([]byte("E\x00\x00\x00x\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x15\x13\x80\x10\x00"), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, version uint32) {
		for _, pointer := range []int{4, 8} {
			for _, name := range []string{
				first(clrevent.DecodeTick(b, version, pointer)).Name,
				first(clrevent.DecodeSampled(b, pointer)).Name,
				first(clrevent.DecodeException(b, pointer)).Type,
				first(clrevent.DecodeException(b, pointer)).Message,
			} {
				if len(name) > 2*len(b) { // three bytes of UTF-8 for two
					t.Fatalf("a name of %d bytes from %d", len(name), len(b))
				}
			}
			if a, ok := clrevent.DecodeSampled(b, pointer); ok && a.Weight == 0 {
				t.Fatalf("%+v stands for nothing", a)
			}
		}
	})
}

func first[T any](v T, _ bool) T { return v }

// FuzzPayload reads any bytes as the payload of each event: no panic, no text that is
// longer than the bytes there are.
func FuzzPayload(f *testing.F) {
	f.Add(make([]byte, 64), uint32(2), true)
	f.Add([]byte{1, 0, 0, 0, 'a', 0, 'b', 0, 0, 0, 0xff}, uint32(0), false)
	f.Fuzz(func(t *testing.T, in []byte, version uint32, wide bool) {
		pointer := 4
		if wide {
			pointer = 8
		}
		clrevent.DecodeContention(in, version, pointer)
		clrevent.DecodeContentionStop(in, version)
		clrevent.DecodeWait(in, pointer)
		clrevent.DecodeThread(in)
		clrevent.DecodeRuntime(in)
		clrevent.DecodeSampled(in, pointer)
		method, _ := clrevent.DecodeMethod(in)
		module, _ := clrevent.DecodeModule(in)
		process, _ := clrevent.DecodeProcess(in)
		tick, _ := clrevent.DecodeTick(in, version, pointer)
		exception, _ := clrevent.DecodeException(in, pointer)
		for _, s := range []string{method.FullName(), module.IL, process.CommandLine, tick.Name,
			exception.Type, exception.Message} {
			must.True(t, len(s) <= 4*len(in)+8, "a text of %d bytes of %d", len(s), len(in))
		}
	})
}

// maxFuzzedEvents bounds a trace: Go ends a worker whose input takes ten seconds, which
// thousands of events in every format do on a busy machine.
const maxFuzzedEvents = 512

// FuzzWaits makes a trace of events whose order, threads, gaps and times the
// input chooses: the sums hold, and every report can be written.
func FuzzWaits(f *testing.F) {
	f.Add([]byte{0x01, 0x21, 0x31, 0x11, 0x02, 0x12})
	f.Add([]byte{0x21, 0x80, 0x31, 0x01, 0x21, 0x11, 0x31})
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:min(len(in), maxFuzzedEvents)]
		w := nettracefile.New(nettracefile.Options{PID: 1, Ticks: 1000})
		w.Metadata(nettracefile.Meta{ID: 1, Provider: clrevent.Runtime, Event: 81, Version: 2},
			nettracefile.Meta{ID: 2, Provider: clrevent.Runtime, Event: 91, Version: 1},
			nettracefile.Meta{ID: 3, Provider: clrevent.Runtime, Event: 301},
			nettracefile.Meta{ID: 4, Provider: clrevent.Runtime, Event: 302},
			nettracefile.Meta{ID: 5, Provider: clrevent.Runtime, Event: 143, Version: 1},
			nettracefile.Meta{ID: 6, Provider: clrevent.Runtime, Event: 144, Version: 1})
		now, seq := uint64(2000), [8]uint32{}
		for i, b := range in {
			now += uint64(b>>3) + 1
			thread := b & 7
			seq[thread]++
			if b&0x80 != 0 {
				seq[thread] += uint32(b >> 5)
			}
			if b == 0xff {
				seq[thread] = 1
			}
			if i%17 == 0 {
				w.Stacks(1, []uint64{0x1000, uint64(i)}, []uint64{0x2000})
			}
			payload := in[i:min(i+27, len(in))]
			w.Events(nettracefile.Event{Meta: uint32(b>>4)%6 + 1, Seq: seq[thread], Thread: uint64(thread),
				Time: now, Stack: uint32(b % 4), Payload: payload})
			if b == 0x77 {
				w.Point(now, nettracefile.ThreadSeq{Thread: uint64(thread), Seq: seq[thread] + uint32(i%2)})
			}
		}
		checkWaits(t, w.End().Bytes())
	})
}

// FuzzWaitsFile reads any bytes.
func FuzzWaitsFile(f *testing.F) {
	for _, v := range []int{4, 5, 6} {
		f.Add(smallTrace(nettracefile.Options{Version: v}))
	}
	f.Fuzz(checkWaits)
}

func checkWaits(t *testing.T, trace []byte) {
	a := waits.New()
	err := a.Read(bytes.NewReader(trace))
	a.Finish()
	if err != nil && len(a.Partial()) == 0 {
		t.Fatalf("%v, and nothing is said", err)
	}
	if a.Trace.Frequency == 0 {
		return
	}
	for i := range a.Waits {
		if w := &a.Waits[i]; w.Nanos < 0 || w.Stop < w.Start {
			t.Fatalf("%+v", w)
		}
	}
	for _, p := range waittruth.Judge(nil, a).Problems {
		if a.Backwards == 0 && len(a.Faults) == 0 {
			t.Fatal(p)
		}
	}
	for _, f := range report.Formats() {
		if err := f.Write(io.Discard, a); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
}

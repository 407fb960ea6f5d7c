package fuzz

import (
	"bytes"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

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
		w.Metadata(nettracefile.Meta{ID: 1, Provider: clrevent.Runtime, Event: 81, Version: 2}, nettracefile.Meta{ID: 2, Provider: clrevent.Runtime, Event: 91, Version: 1},
			nettracefile.Meta{ID: 3, Provider: clrevent.Runtime, Event: 301}, nettracefile.Meta{ID: 4, Provider: clrevent.Runtime, Event: 302},
			nettracefile.Meta{ID: 5, Provider: clrevent.Runtime, Event: 143, Version: 1}, nettracefile.Meta{ID: 6, Provider: clrevent.Runtime, Event: 144, Version: 1})
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
			w.Events(nettracefile.Event{Meta: uint32(b>>4)%6 + 1, Seq: seq[thread], Thread: uint64(thread), Time: now, Stack: uint32(b % 4), Payload: payload})
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

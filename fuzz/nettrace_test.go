package fuzz

import (
	"bytes"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

// smallTrace has every block of a version.
func smallTrace(o nettracefile.Options) []byte {
	w := nettracefile.New(o)
	if o.Version >= 6 {
		w.Threads(nettracefile.Thread6{Index: 1, PID: 7, TID: 70}, nettracefile.Thread6{Index: 2, PID: 7, TID: 71, Name: "two"})
	}
	w.Metadata(nettracefile.Meta{ID: 1, Provider: "Microsoft-Windows-DotNETRuntime", Event: 301, Version: 0, Level: 5, Opcode: 1},
		nettracefile.Meta{ID: 2, Provider: "Microsoft-Windows-DotNETRuntime", Event: 302})
	w.Stacks(1, []uint64{1, 2, 3}, nil)
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 1, Stack: 1, Time: 10, Payload: make([]byte, 11)},
		nettracefile.Event{Meta: 2, Seq: 2, Thread: 1, Stack: 2, Time: 20, Payload: make([]byte, 2), Sorted: true})
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
		if r.Held() > 8*len(in)+(1<<20)+4096 {
			t.Fatalf("%d bytes held for %d", r.Held(), len(in))
		}
	})
}

package fuzz

import (
	"bytes"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
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

// FuzzEvents: payloads of the events that a probe copies, which may be cut anywhere.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x10\x11\x12\x13\x14\x15\x16\x17\x20\x21\x22\x23\x24\x25\x26\x27A\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04"), uint32(4))
	f.Add([]byte("E\x00\x00\x00x\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x15\x13\x80\x10\x00"), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, version uint32) {
		for _, pointer := range []int{4, 8} {
			for _, name := range []string{
				first(clrevent.DecodeTick(b, version, pointer)).Name, first(clrevent.DecodeSampled(b, pointer)).Name,
				first(clrevent.DecodeException(b, pointer)).Type, first(clrevent.DecodeException(b, pointer)).Message,
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
		for _, s := range []string{method.FullName(), module.IL, process.CommandLine, tick.Name, exception.Type, exception.Message} {
			if len(s) > 4*len(in)+8 {
				t.Fatalf("a text of %d bytes of %d", len(s), len(in))
			}
		}
	})
}

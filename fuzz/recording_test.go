package fuzz

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/diff"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// block wraps items in a block with a right checksum, so that damage reaches the items.
func block(raw []byte) []byte {
	var body bytes.Buffer
	w, _ := flate.NewWriter(&body, flate.BestSpeed)
	w.Write(raw)
	w.Close()
	head := binary.LittleEndian.AppendUint32(nil, uint32(body.Len()))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(raw)))
	head = binary.LittleEndian.AppendUint32(head,
		crc32.Checksum(body.Bytes(), crc32.MakeTable(crc32.Castagnoli)))
	return append(head, body.Bytes()...)
}

// itemsOf makes the messages those of process 1.
func itemsOf(t testing.TB, w *wire.Writer) []byte {
	items := []byte{0, 2, 5, 1, 7, 0, 1, 'p'}
	for b := w.Bytes(); len(b) > 0; {
		_, n, err := wire.Parse(b)
		must.Do(t, err)
		items = append(append(items, 1), b[:n]...)
		b = b[n:]
	}
	return items
}

// hostile are messages whose numbers have all bits, or all but the highest.
func hostile() *wire.Writer {
	w := wire.NewWriter(nil)
	for _, v := range []uint64{1<<64 - 1, 1<<63 - 1, 1 << 63} {
		at := int64(v)
		w.Hello(&wire.Hello{PID: v, StartUnixNano: at, RateMilliHz: v})
		w.Module(&wire.Module{ID: 1, Start: v, End: v, Bias: v, Path: "/lib/a.so"})
		frames := []wire.Frame{{Module: 1, IP: v}, {Kind: 1, Method: 1, IP: v}}
		for tid := range uint64(3) {
			for range 3 {
				w.Sample(&wire.Sample{TID: v - tid, TimeUnixNano: at, WallNanos: v, CPUNanos: v,
					Frames: frames})
			}
			for kind := range uint8(wire.NumEvents) {
				w.Event(&wire.Event{TID: v - tid, TimeUnixNano: at, Kind: kind, Nanos: v, Bytes: v, Owner: v,
					Lock: v, Frames: frames})
			}
			w.Usage(&wire.Usage{TID: v - tid, CPUNanos: v, KernelNanos: v, Cause: uint8(tid)})
		}
		w.Usage(&wire.Usage{CPUNanos: v})
		w.Dropped(&wire.Dropped{Kind: wire.EventAllocation, Name: "T", Count: v, Bytes: v})
		for _, key := range []string{wire.StatLost, wire.StatSuspended + "<=7",
			wire.StatSuspended + ".max", "probe_x"} {
			w.Stats(key, v)
		}
	}
	return w
}

// FuzzRecording reads any items as a recording. Every profile that comes out is sound, whatever
// part of it is chosen, and can be compared, and written in each format.
func FuzzRecording(f *testing.F) {
	w := wire.NewWriter(nil)
	w.Hello(&wire.Hello{PID: 1, Arch: "amd64", Runtime: "r", StartUnixNano: 1e9, RateMilliHz: 100_000})
	w.Module(&wire.Module{ID: 1, Start: 1 << 46, End: 1<<46 + 4096, Bias: 1 << 46,
		Path: "/lib/a.so", BuildID: "ab"})
	w.Sample(&wire.Sample{TID: 5, TimeUnixNano: 1e9 + 5, WallNanos: 4, CPUNanos: 1, Gap: 2,
		Frames: []wire.Frame{{Module: 1, IP: 1<<46 + 5}, {Kind: 4, Gap: 2}, {Kind: 1, Method: 1, IP: 3}}})
	w.Event(&wire.Event{TID: 5, TimeUnixNano: 2e9, Kind: wire.EventWait, Nanos: 1e6})
	w.Usage(&wire.Usage{TID: 5, CPUNanos: 9})
	w.Usage(&wire.Usage{CPUNanos: 12})
	items := itemsOf(f, w)
	f.Add(items)
	f.Add(itemsOf(f, hostile()))
	f.Add(append(items, 0, 3, 5, 1, 1, 'a', 1, 'b', 0, 4, 5, 1, 9, 8, 12, 0, 0, 5, 1, 1))
	f.Add([]byte{0, 1, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := recording.Read(bytes.NewReader(append([]byte("SWREC\r\n\x01"), block(in)...)))
		must.Do(t, err)
		p := collect.Build(&r.Info, r.Processes, &r.Names)
		part, err := p.Select(export.Selection{Since: 1, Until: 1e9, Thread: "5"})
		if _, untimed := err.(*export.NoTimesError); err != nil && !untimed {
			t.Fatal(err)
		}
		for _, q := range []*export.Profile{p, part} {
			if q == nil {
				continue
			}
			must.Do(t, q.Check())
			for i := range q.Stacks {
				s := &q.Stacks[i]
				must.True(t, min(s.Count, s.WallNanos, s.CPUNanos, s.CPUCount, s.Sum, s.Longest) >= 0,
					"%+v", s)
			}
			for _, f := range export.Formats() {
				if err := f.Write(io.Discard, q); err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
			}
			if _, err := diff.Compare(q, p); err != nil && export.Metric(q) == export.Metric(p) {
				t.Fatal(err)
			}
		}
	})
}

// FuzzRecordingFile reads any bytes as a recording file, which ends in bounded memory.
func FuzzRecordingFile(f *testing.F) {
	f.Add(append([]byte("SWREC\r\n\x01"), block([]byte{0, 5, 1, 1})...))
	f.Add([]byte("SWREC\r\n\x01\xff\xff\xff\x00\xff\xff\xff\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := recording.Read(bytes.NewReader(in))
		if err == nil && r.Complete && r.Damage != nil && len(in) < 20 {
			t.Fatal(r.Damage)
		}
	})
}

// FuzzRaw reads any bytes as a file of raw samples: an error or the end, and no
// more samples than bytes.
func FuzzRaw(f *testing.F) {
	empty := filepath.Join(f.TempDir(), "raw")
	w := must.Get(raw.Create(empty))(f)
	w.Close()
	head := must.Get(os.ReadFile(empty))(f)
	for _, record := range []string{"S\x08\x00\x00\x00aaaaaaaa",
		"T\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add(append(head[:len(head):len(head)], record...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := raw.NewReader(bytes.NewReader(b))
		for n := 0; err == nil; n++ {
			must.True(t, n <= len(b), "%d samples in %d bytes", n, len(b))
			_, err = r.Next()
		}
	})
}

// FuzzWire reads any bytes as a stream: it must end with an error, in as many
// messages as bytes allow, and what was read must survive writing and reading.
func FuzzWire(f *testing.F) {
	w := wire.NewWriter(nil)
	w.Hello(&wire.Hello{PID: 1, Arch: "amd64", Runtime: "r", RateMilliHz: 100_000})
	w.Module(&wire.Module{ID: 1, Start: 1 << 46, End: 1<<46 + 4096, Bias: 1 << 46,
		Path: "/lib/a.so", BuildID: "ab"})
	w.Line(&wire.Line{Addr: 1 << 47, File: "/a.cs", Line: 7})
	w.Method(&wire.Method{ID: 1, FunctionID: 1 << 47, Name: "A.B", Module: "A"})
	w.Thread(&wire.Thread{TID: 5, Name: "main"})
	w.GapName(2, "no-info")
	w.Sample(&wire.Sample{TID: 5, Gap: 2,
		Frames: []wire.Frame{{Module: 1, IP: 1<<46 + 5}, {Kind: 4, Gap: 2}, {Kind: 1, Method: 1, IP: 3}}})
	w.Usage(&wire.Usage{TID: 5, CPUNanos: 9, KernelNanos: 1, Cause: wire.CauseShort})
	w.Stats("lost", 3)
	w.Note("n")
	w.Bye("exit")
	f.Add(w.Bytes())
	f.Add(w.Bytes()[:w.Len()/2])
	f.Add([]byte{200, 1, 0, 7, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		first, err := readWire(in)
		must.True(t, err != nil && len(first) <= len(in)/2,
			"%d messages of %d bytes, error %v", len(first), len(in), err)
		again, err := readWire(writeWire(first))
		if d := cmptest.Diff(first, again); err != io.EOF || d != "" {
			t.Fatalf("written and read again: %v\n%s", err, d)
		}
	})
}

func readWire(in []byte) (ms []wire.Message, err error) {
	r := wire.NewReader(bytes.NewReader(in))
	for {
		m, err := r.Next()
		if err != nil {
			return ms, err
		}
		if h, ok := m.(*wire.Hello); ok && h.Version == 0 {
			h.Version = wire.Version // the writer never writes 0
		}
		ms = append(ms, m)
	}
}

func writeWire(ms []wire.Message) []byte {
	w := wire.NewWriter(nil)
	for _, m := range ms {
		switch m := m.(type) {
		case *wire.Hello:
			w.Hello(m)
		case *wire.Module:
			w.Module(m)
		case *wire.Method:
			w.Method(m)
		case *wire.Line:
			w.Line(m)
		case *wire.Thread:
			w.Thread(m)
		case *wire.Usage:
			w.Usage(m)
		case *wire.Sample:
			w.Sample(m)
		case *wire.Stats:
			w.Stats(m.Key, m.Value)
		case *wire.Note:
			w.Note(m.Text)
		case *wire.Bye:
			w.Bye(m.Reason)
		case *wire.GapName:
			w.GapName(m.Code, m.Name)
		}
	}
	return w.Bytes()
}

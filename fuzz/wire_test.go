package fuzz

import (
	"bytes"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
)

// FuzzWire reads any bytes as a stream: it must end with an error, in as many
// messages as bytes allow, and what was read must survive writing and reading.
func FuzzWire(f *testing.F) {
	w := wire.NewWriter(nil)
	w.Hello(&wire.Hello{PID: 1, Arch: "amd64", Runtime: "r", RateMilliHz: 100_000})
	w.Module(&wire.Module{ID: 1, Start: 1 << 46, End: 1<<46 + 4096, Bias: 1 << 46, Path: "/lib/a.so", BuildID: "ab"})
	w.Line(&wire.Line{Addr: 1 << 47, File: "/a.cs", Line: 7})
	w.Method(&wire.Method{ID: 1, FunctionID: 1 << 47, Name: "A.B", Module: "A"})
	w.Thread(&wire.Thread{TID: 5, Name: "main"})
	w.GapName(2, "no-info")
	w.Sample(&wire.Sample{TID: 5, Gap: 2, Frames: []wire.Frame{{Module: 1, IP: 1<<46 + 5}, {Kind: 4, Gap: 2}, {Kind: 1, Method: 1, IP: 3}}})
	w.Usage(&wire.Usage{TID: 5, CPUNanos: 9, KernelNanos: 1, Cause: wire.CauseShort})
	w.Stats("lost", 3)
	w.Note("n")
	w.Bye("exit")
	f.Add(w.Bytes())
	f.Add(w.Bytes()[:w.Len()/2])
	f.Add([]byte{200, 1, 0, 7, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		first, err := readWire(in)
		if err == nil || len(first) > len(in)/2 {
			t.Fatalf("%d messages of %d bytes, error %v", len(first), len(in), err)
		}
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

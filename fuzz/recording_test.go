package fuzz

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/diff"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
	"github.com/seedwalk/seedwalk/report/wire"
)

// block wraps items in a block with a right checksum, so that damage reaches the items.
func block(raw []byte) []byte {
	var body bytes.Buffer
	w, _ := flate.NewWriter(&body, flate.BestSpeed)
	w.Write(raw)
	w.Close()
	head := binary.LittleEndian.AppendUint32(nil, uint32(body.Len()))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(raw)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(body.Bytes(), crc32.MakeTable(crc32.Castagnoli)))
	return append(head, body.Bytes()...)
}

// FuzzRecording reads any items as a recording. Every profile that comes out is sound, whatever
// part of it is chosen, and can be compared.
func FuzzRecording(f *testing.F) {
	w := wire.NewWriter(nil)
	w.Hello(&wire.Hello{PID: 1, Arch: "amd64", Runtime: "r", StartUnixNano: 1e9, RateMilliHz: 100_000})
	w.Module(&wire.Module{ID: 1, Start: 1 << 46, End: 1<<46 + 4096, Bias: 1 << 46, Path: "/lib/a.so", BuildID: "ab"})
	w.Sample(&wire.Sample{TID: 5, TimeUnixNano: 1e9 + 5, WallNanos: 4, CPUNanos: 1, Gap: 2, Frames: []wire.Frame{{Module: 1, IP: 1<<46 + 5}, {Kind: 4, Gap: 2}, {Kind: 1, Method: 1, IP: 3}}})
	w.Event(&wire.Event{TID: 5, TimeUnixNano: 2e9, Kind: wire.EventWait, Nanos: 1e6})
	w.Usage(&wire.Usage{TID: 5, CPUNanos: 9})
	w.Usage(&wire.Usage{CPUNanos: 12})
	process := []byte{0, 2, 5, 1, 7, 0, 1, 'p'}
	items := append([]byte{}, process...)
	for b := w.Bytes(); len(b) > 0; {
		_, n, err := wire.Parse(b)
		if err != nil {
			f.Fatal(err)
		}
		items = append(append(items, 1), b[:n]...)
		b = b[n:]
	}
	f.Add(items)
	f.Add(append(items, 0, 3, 5, 1, 1, 'a', 1, 'b', 0, 4, 5, 1, 9, 8, 12, 0, 0, 5, 1, 1))
	f.Add([]byte{0, 1, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := recording.Read(bytes.NewReader(append([]byte("SWREC\r\n\x01"), block(in)...)))
		if err != nil {
			t.Fatal(err)
		}
		p := collect.Build(&r.Info, r.Processes, &r.Names)
		part, err := p.Select(export.Selection{Since: 1, Until: 1e9, Thread: "5"})
		if _, untimed := err.(*export.NoTimesError); err != nil && !untimed {
			t.Fatal(err)
		}
		for _, q := range []*export.Profile{p, part} {
			if q == nil {
				continue
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
			if _, err := diff.Compare(q, p); err != nil {
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

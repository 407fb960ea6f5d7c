package fuzz

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

// described is a trace whose descriptions of events are the input: the payload of an
// event of a MetadataBlock, or the rows of one of version 6.
func described(in []byte, version int) []byte {
	w := nettracefile.New(nettracefile.Options{Version: version})
	if version >= 6 {
		w.Threads(nettracefile.Thread6{Index: 1, TID: 1}).Block6(3, in)
	} else {
		block := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
		block = append(block, 128, 0) // a payload, at the time of the event before
		block = binary.AppendUvarint(block, uint64(len(in)))
		w.Block("MetadataBlock", append(block, in...))
	}
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 1, Time: 10, Payload: make([]byte, 11)})
	return w.End().Bytes()
}

// FuzzTraceMetadata reads any bytes as descriptions of events, of each version: one event
// is read whatever they are, and no text is longer than the bytes there are.
func FuzzTraceMetadata(f *testing.F) {
	blob := binary.LittleEndian.AppendUint32(nil, 1)
	for _, c := range "Microsoft-Windows-DotNETRuntime\x00" {
		blob = binary.LittleEndian.AppendUint16(blob, uint16(c))
	}
	blob = binary.LittleEndian.AppendUint32(blob, 301)
	blob = append(blob, make([]byte, 2+8+4+4)...) // name, keywords, version, level
	fields := append(binary.LittleEndian.AppendUint32(blob[:len(blob):len(blob)], 2), 1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 'a', 0, 0, 0, 'b', 0, 0, 0, 9, 0, 0, 0, 'c', 0, 0, 0)
	f.Add(append(blob[:len(blob):len(blob)], make([]byte, 4)...), uint8(4))
	f.Add(append(fields, 1, 0, 0, 0, 1, 7), uint8(5))
	f.Add([]byte("\x00\x00\x0e\x00\x01\x01P\xad\x02\x01n\x00\x00\x00\x00\x02\x00\x08\x05"), uint8(6))
	f.Fuzz(func(t *testing.T, in []byte, version uint8) {
		raw := described(in, 4+int(version)%3)
		r := nettrace.NewReader(bytes.NewReader(raw))
		events := 0
		for {
			kind, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v: what is around the descriptions is whole", err)
			}
			if kind != nettrace.EventKind {
				continue
			}
			events++
			m := r.Event().Meta
			if len(m.Provider) > 3*len(in) || len(m.Name) > 3*len(in) {
				t.Fatalf("texts of %d and %d bytes from %d", len(m.Provider), len(m.Name), len(in))
			}
			clrevent.KindOf(m.Provider, m.EventID, m.Version)
		}
		if events != 1 {
			t.Fatalf("%d events", events)
		}
	})
}

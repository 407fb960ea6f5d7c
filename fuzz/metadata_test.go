package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/symbol/pdb"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/pdbfile"
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
	fields := append(binary.LittleEndian.AppendUint32(blob[:len(blob):len(blob)], 2), 1, 0, 0, 0, 1, 0, 0, 0,
		9, 0, 0, 0, 'a', 0, 0, 0, 'b', 0, 0, 0, 9, 0, 0, 0, 'c', 0, 0, 0)
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
			must.True(t, err == nil, "%v: what is around the descriptions is whole", err)
			if kind != nettrace.EventKind {
				continue
			}
			events++
			m := r.Event().Meta
			must.True(t, len(m.Provider) <= 3*len(in) && len(m.Name) <= 3*len(in),
				"texts of %d and %d bytes from %d", len(m.Provider), len(m.Name), len(in))
			clrevent.KindOf(m.Provider, m.EventID, m.Version)
		}
		must.True(t, events == 1, "%d events", events)
	})
}

// FuzzInlines reads any bytes of a process as a tree of inlined methods: each has a method, and the memory is
// bounded by what was read.
func FuzzInlines(f *testing.F) {
	f.Add([]byte{0x61, 0x70, 0x84, 0xa9, 0xdc, 0x00, 0x7f, 0x00, 0x00, 0x02, 0x90, 0x07, 0x24, 0x06, 0x99,
		0x24, 0x3b, 0x90, 0x02, 0x19, 0x90, 0x79, 0xe2, 0x04, 0xe9, 0x24, 0x0b, 0xc0, 0x23}, uint32(47))
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x77}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, native uint32) {
		bounded(t, 1<<14, len(b), func() {
			for _, in := range contract.DecodeInlines(b, native) {
				expect.True(t, in.Method != 0, "%+v", in)
			}
		})
	})
}

// FuzzPDB reads any bytes as a PDB: an error is typed, a name is bounded, and so is the memory.
func FuzzPDB(f *testing.F) {
	file := pdbfile.File{
		Age: 1, Sections: []pdbfile.Section{{RVA: 0x1000, Size: 0x1000, Flags: 0x60000020}},
		Names:   []byte("\x00a.c\x00"),
		Publics: []pdbfile.Name{{Segment: 1, Offset: 0x10, Text: "?f@@YAXXZ"}},
		Modules: []pdbfile.Module{{Procedures: []pdbfile.Name{{Segment: 1,
			Offset: 0x10, Size: 0x20, Text: "f"}},
			Lines: []pdbfile.Line{{Segment: 1, Offset: 0x10, Size: 0x20, File: 1,
				Entries: [][2]uint32{{0, 7}, {4, 8}}}}}},
	}
	f.Add(file.Bytes(), uint32(0x1014))
	file.Omap = true
	f.Add(file.Bytes(), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, rva uint32) {
		bounded(t, 1<<16, len(b), func() {
			db, err := pdb.New(b, "x.pdb")
			var refused *pdb.Error
			if err != nil {
				if !errors.As(err, &refused) {
					t.Error(err)
				}
				return
			}
			names, err := db.Symbols()
			if err != nil && !errors.As(err, &refused) {
				t.Error(err)
			}
			for _, n := range names {
				expect.True(t, n.Name != "" && len(n.Name) <= len(b), "%+v", n)
			}
			if file, line := db.Line(rva); (file == "") != (line == 0) || len(file) > len(b) {
				t.Errorf("%q:%d", file, line)
			}
		})
	})
}

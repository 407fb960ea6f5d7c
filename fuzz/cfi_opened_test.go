package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
)

// searchTable is an .eh_frame_hdr at hdrAt of (start, offset of its FDE).
func searchTable(pairs ...[2]uint32) []byte {
	h := []byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0}
	h = binary.LittleEndian.AppendUint32(h, uint32(len(pairs)))
	for _, p := range pairs {
		h = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(h, p[0]-hdrAt), ehAddr-hdrAt+p[1])
	}
	return h
}

const hdrAt = 0x1800

// FuzzOpened asks a table that was opened and one that was read the same. Where the header
// leads only to FDEs that the section has, and none of them lie over each other, the answers
// are the same from the first; in any case once all has been read.
func FuzzOpened(f *testing.F) {
	eh := frameSeed(programSeeds[1]...)
	f.Add(searchTable([2]uint32{0x1000, 22}), eh, uint64(0x1001), uint64(hdrAt))
	f.Add(searchTable(), eh, uint64(0x1001), uint64(hdrAt))
	two := encodedSeed(0x03, [2]uint32{0x1000, 0x1040}, [2]uint32{0x1040, 0x1060})
	f.Add(searchTable([2]uint32{0x1000, 32}, [2]uint32{0x1040, 53}), two, uint64(0x1041), uint64(hdrAt))
	f.Add(searchTable([2]uint32{0x1040, 53}, [2]uint32{0x1000, 32}), two, uint64(0x1041), uint64(hdrAt)) // not sorted
	f.Add(searchTable([2]uint32{0x1000, 53}, [2]uint32{0x1000, 32}), two, uint64(0x1000), uint64(hdrAt)) // one start twice
	f.Add(searchTable([2]uint32{0x1000, 0xfffffff0}, [2]uint32{0x1040, 1}), two, uint64(0x1041), uint64(hdrAt))
	for _, s := range sorted(seedCFI(f)) {
		f.Add(s.EHFrameHdr, s.EHFrame, s.TextAddr+0x40, s.EHFrameHdrAddr-s.EHFrameAddr+ehAddr)
	}
	f.Fuzz(func(t *testing.T, hdr, eh []byte, pc, hdrAddr uint64) {
		if len(hdr)+len(eh) > 1<<16 {
			return
		}
		eh, hdr = eh[:len(eh):len(eh)], hdr[:len(hdr):len(hdr)] // a read past the end is a panic
		for _, arch := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
			s := cfi.Sections{Arch: arch, EHFrame: eh, EHFrameAddr: ehAddr, EHFrameHdr: hdr, EHFrameHdrAddr: hdrAddr}
			all, err := cfi.Load(s)
			opened := cfi.Open(s)
			st := all.Stats()
			o := openedPair{all: all, opened: opened, strict: opened.Read() || st.Overlapping == 0 && st.HeaderWrong == 0 && !blamesHeader(err)}
			o.everywhere(t, pc)
			opened.Complete()
			o.strict = true
			o.everywhere(t, pc)
		}
	})
}

// blamesHeader reports whether an entry of the header leads to no FDE.
func blamesHeader(err error) bool {
	le, _ := err.(*cfi.LoadError)
	if le == nil {
		return false
	}
	for _, p := range le.Problems {
		if p.Structure == "table entry" {
			return true
		}
	}
	return le.Count > len(le.Problems)
}

type openedPair struct {
	all, opened *cfi.Table
	strict      bool
	m           [2]cfi.Machine
	row         [2]cfi.Row
}

// everywhere asks for pc and for the edges of some functions.
func (o *openedPair) everywhere(t *testing.T, pc uint64) {
	o.at(t, pc)
	n := 0
	o.all.Each(func(f cfi.FDE) bool {
		for _, pc := range []uint64{f.Lo - 1, f.Lo, f.Hi - 1, f.Hi} {
			o.at(t, pc)
		}
		n++
		return n < 16
	})
}

func (o *openedPair) at(t *testing.T, pc uint64) {
	a, why := o.all.Find(pc)
	b, openedWhy := o.opened.Find(pc)
	if openedWhy == cfi.None && (pc < b.Lo || b.Hi <= pc) {
		t.Fatalf("%#x: %+v does not cover it", pc, b)
	}
	if o.strict && (why != openedWhy || a != b) {
		t.Fatalf("%#x: %v %+v of all, %v %+v of the opened", pc, why, a, openedWhy, b)
	}
	rowWhy, openedWhy := o.m[0].Row(o.all, pc, &o.row[0]), o.m[1].Row(o.opened, pc, &o.row[1])
	if o.strict && (rowWhy != openedWhy || !sameRow(&o.row[0], &o.row[1])) {
		t.Fatalf("%#x: row %v %+v of all, %v %+v of the opened", pc, rowWhy, o.row[0].FDE, openedWhy, o.row[1].FDE)
	}
}

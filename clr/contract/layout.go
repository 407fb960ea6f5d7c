package contract

// layout holds the offsets that a lookup needs.
type layout struct {
	mapTop uint64

	fragmentNext, fragmentBegin, fragmentEnd, fragmentSection uint64

	sectionBegin, sectionEnd, sectionFlags, sectionR2R, sectionHeap, sectionDeleted uint64

	heapMapBase, heapHeaderMap uint64

	headerMethod, headerCount, headerInfos uint64

	stubLast uint64
	linear   bool // the nibble map has no pointer words
}

// layout10 are the offsets of .NET 10.0.9. They also apply to 9.0.5, whose descriptor lacks them.
var layout10 = layout{
	fragmentNext: 0, fragmentBegin: 8, fragmentEnd: 16, fragmentSection: 24,
	sectionBegin: 0, sectionEnd: 8, sectionFlags: 16, sectionHeap: 40, sectionR2R: 32, sectionDeleted: 64,
	heapMapBase: 32, heapHeaderMap: 40,
	headerMethod: 24, headerCount: 32, headerInfos: 36,
	stubLast: 15,
}

// layout returns the offsets from a descriptor. All must be present, and a RUNTIME_FUNCTION must have
// functionSize bytes.
func (d *Descriptor) layout(functionSize uint32) (layout, error) {
	l := layout{stubLast: 15}
	if g, ok := d.Globals["StubCodeBlockLast"]; ok && !g.Indirect && g.Value < 256 {
		l.stubLast = g.Value
	}
	for _, f := range []struct {
		typ, field string
		to         *uint64
	}{
		{"RangeSectionMap", "TopLevelData", &l.mapTop},
		{"RangeSectionFragment", "Next", &l.fragmentNext},
		{"RangeSectionFragment", "RangeBegin", &l.fragmentBegin},
		{"RangeSectionFragment", "RangeEndOpen", &l.fragmentEnd},
		{"RangeSectionFragment", "RangeSection", &l.fragmentSection},
		{"RangeSection", "RangeBegin", &l.sectionBegin},
		{"RangeSection", "RangeEndOpen", &l.sectionEnd},
		{"RangeSection", "Flags", &l.sectionFlags},
		{"RangeSection", "R2RModule", &l.sectionR2R},
		{"RangeSection", "HeapList", &l.sectionHeap},
		{"RangeSection", "NextForDelete", &l.sectionDeleted},
		{"CodeHeapListNode", "MapBase", &l.heapMapBase},
		{"CodeHeapListNode", "HeaderMap", &l.heapHeaderMap},
		{"RealCodeHeader", "MethodDesc", &l.headerMethod},
		{"RealCodeHeader", "NumUnwindInfos", &l.headerCount},
		{"RealCodeHeader", "UnwindInfos", &l.headerInfos},
	} {
		off, ok := d.Offset(f.typ, f.field)
		if !ok {
			return l, &Error{"contract descriptor", 0, 0, "no field " + f.typ + "." + f.field}
		}
		*f.to = uint64(off)
	}
	if size := d.Types["RuntimeFunction"]["!"]; size != functionSize {
		return l, &Error{"contract descriptor", 0, uint64(size), "RuntimeFunction is of another architecture"}
	}
	return l, nil
}

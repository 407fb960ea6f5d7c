package nettracefile

import (
	"encoding/binary"
	"unicode/utf16"
)

// Metadata writes a block with descriptions of events, in the form of the writer's version.
func (w *Writer) Metadata(metas ...Meta) *Writer {
	if w.Version >= 6 {
		return w.metadata6(metas)
	}
	if w.Version < 4 {
		return w.describeNetperf(metas)
	}
	var events []Event
	for _, m := range metas {
		events = append(events, Event{Seq: 0xffffffff, Proc: 0xffffffff, Payload: w.describe(&m)})
	}
	return w.Block("MetadataBlock", w.events(events))
}

func (w *Writer) describe(m *Meta) []byte {
	var b enc
	b.u32(m.ID)
	b.wide(m.Provider)
	b.u32(m.Event)
	b.wide(m.Name)
	b.u64(m.Keywords)
	b.u32(m.Version)
	b.u32(m.Level)
	n := len(m.Fields)
	if m.ExtraField {
		n++
	}
	b.u32(uint32(n))
	if m.ExtraField { // a field of type object, with one Int32 field in it
		b.u32(1)
		b.u32(1)
		b.u32(9)
		b.wide("inner")
		b.wide("outer")
	}
	for _, f := range m.Fields {
		b.u32(9)
		b.wide(f)
	}
	if w.Version >= 5 {
		if m.ExtraTag {
			b.u32(3)
			b = append(b, 2, 1, 2, 3)
		}
		b.u32(1)
		b = append(b, 1, m.Opcode)
	}
	return b
}

func (w *Writer) metadata6(metas []Meta) *Writer {
	var b enc
	b.u16(2) // a header of two bytes, which readers skip
	b.u16(0xdddd)
	for _, m := range metas {
		var r enc
		r.v(uint64(m.ID))
		r.str(m.Provider)
		r.v(uint64(m.Event))
		r.str(m.Name)
		r.u16(uint16(len(m.Fields)))
		for _, f := range m.Fields {
			var x enc
			x.str(f)
			x = append(x, 9)
			r.u16(uint16(len(x)))
			r = append(r, x...)
		}
		o := enc{1, m.Opcode, 3}
		o.u64(m.Keywords)
		o = append(o, 4)
		o.str("template")
		o = append(o, 6)
		o.str("key")
		o.str("value")
		o = append(append(o, 7), make([]byte, 16)...)
		o = append(o, 8, byte(m.Level), 9, byte(m.Version))
		r.u16(uint16(len(o)))
		r = append(append(r, o...), 0xdd)
		b.u16(uint16(len(r)))
		b = append(b, r...)
	}
	return w.Block6(3, b)
}

// enc appends little-endian values.
type enc []byte

func (e *enc) u16(v uint16) { *e = binary.LittleEndian.AppendUint16(*e, v) }
func (e *enc) u32(v uint32) { *e = binary.LittleEndian.AppendUint32(*e, v) }
func (e *enc) u64(v uint64) { *e = binary.LittleEndian.AppendUint64(*e, v) }
func (e *enc) v(v uint64)   { *e = binary.AppendUvarint(*e, v) }

func (e *enc) addrs(stack []uint64, size int) {
	for _, a := range stack {
		if size == 4 {
			e.u32(uint32(a))
		} else {
			e.u64(a)
		}
	}
}

func (e *enc) str(s string) {
	e.v(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *enc) wide(s string) {
	for _, c := range utf16.Encode([]rune(s)) {
		e.u16(c)
	}
	e.u16(0)
}

func itoa(v uint32) string {
	var b []byte
	for {
		b = append([]byte{byte('0' + v%10)}, b...)
		if v /= 10; v == 0 {
			return string(b)
		}
	}
}

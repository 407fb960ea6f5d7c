package nettrace

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// Tags that may follow a description of version 5.
const tagOpcode = 1

// metadataV4 reads a block whose events describe kinds of events.
func (r *Reader) metadataV4() {
	if !r.open() {
		return
	}
	for r.events.left() {
		at := r.base + int64(r.events.in.Pos())
		payload, ok := r.decode()
		if !ok {
			r.abandon(BadEvent, at)
			break
		}
		m, ok := r.describe(payload)
		if !ok {
			r.fault(BadMetadata, at, "")
			continue
		}
		r.define(m, at)
	}
	r.events.active = false
}

// define stores a description.
func (r *Reader) define(m *Metadata, at int64) {
	r.counts.Metadata++
	if len(r.metadata) >= maxMetadata || r.strings > maxStrings {
		r.fault(TooMuch, at, "descriptions of events")
		return
	}
	r.metadata[m.ID] = m
	r.recent = nil
}

// describe reads a description of version 4 or 5. It ignores fields: they have no size, and
// the data after them is optional.
func (r *Reader) describe(payload []byte) (*Metadata, bool) {
	b := buf.At(payload, 0)
	m := &Metadata{ID: b.U32(), Provider: r.wide(&b), EventID: b.U32(), Name: r.wide(&b), Keywords: b.U64(),
		Version: b.U32(), Level: b.U32(), Fields: int(b.U32())}
	if !b.OK() || m.ID == 0 {
		return nil, false
	}
	if skipFields(&b, m.Fields, 0) {
		m.readTags(&b)
	}
	return m, true
}

// Field types with something after the type: an object's fields.
const typeObject = 1

// maxNesting bounds fields within fields.
const maxNesting = 8

// skipFields steps over a list of fields: type, for an object its fields, name.
func skipFields(b *buf.Reader, n, depth int) bool {
	for ; n > 0 && b.OK() && depth < maxNesting; n-- {
		if b.U32() == typeObject && !skipFields(b, int(b.U32()), depth+1) {
			return false
		}
		skipWide(b)
	}
	return n <= 0 && b.OK()
}

// readTags reads the tags that version 5 appends: size, kind, content.
func (m *Metadata) readTags(b *buf.Reader) {
	for b.OK() && b.Len() > 0 {
		size, kind := b.U32(), b.U8()
		content := b.Bytes(uint64(size))
		if b.OK() && kind == tagOpcode && len(content) > 0 {
			m.Opcode = content[0]
		}
	}
}

// wide reads UTF-16 up to a terminating zero.
func (r *Reader) wide(b *buf.Reader) string {
	start := b.Pos()
	if !skipWide(b) {
		return ""
	}
	return r.text([]byte(UTF16(b.Data[start : b.Pos()-2])))
}

// skipWide steps over UTF-16 and its zero.
func skipWide(b *buf.Reader) bool {
	for b.OK() {
		if b.U16() == 0 {
			return b.OK()
		}
	}
	return false
}

// UTF16 turns little-endian UTF-16 into a string. A lone surrogate becomes
// U+FFFD.
func UTF16(raw []byte) string {
	out := make([]byte, 0, len(raw)/2)
	for i := 0; i+1 < len(raw); i += 2 {
		c := rune(raw[i]) | rune(raw[i+1])<<8
		if utf16.IsSurrogate(c) {
			pair := rune(utf8.RuneError)
			if i+3 < len(raw) {
				pair = utf16.DecodeRune(c, rune(raw[i+2])|rune(raw[i+3])<<8)
			}
			if c = pair; pair != utf8.RuneError {
				i += 2
			}
		}
		out = utf8.AppendRune(out, c)
	}
	return string(out)
}

package nettrace

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seedwalk/seedwalk/internal/buf"
)

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

// describe reads a description of version 4 or 5. It ignores the fields, and the optional data after them.
func (r *Reader) describe(payload []byte) (*Metadata, bool) {
	b := buf.At(payload, 0)
	m := &Metadata{ID: b.U32(), Provider: r.wide(&b), EventID: b.U32(), Name: r.wide(&b)}
	b.U64() // keywords
	m.Version = b.U32()
	b.Skip(8) // level, number of fields
	return m, b.OK() && m.ID != 0
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

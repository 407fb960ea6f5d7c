package bundle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// file is a file of a made bundle.
type file struct {
	path       string
	kind       Kind
	content    string
	compressed bool
}

var made = []file{
	{"app.runtimeconfig.json", RuntimeConfig, "{}", false},
	{"app.dll", Assembly, "the old content", false},
	{"lib/packed.dll", Assembly, "packed", true},
	{strings.Repeat("long/", 60) + "x.dll", Assembly, "", false}, // its length takes two bytes
}

// build makes a program with a bundle: host, files, manifest.
func build(major uint32, files []file) []byte {
	le := binary.LittleEndian
	out := append(bytes.Repeat([]byte{0x90}, 100), make([]byte, 8)...)
	slot := len(out) - 8
	out = append(append(out, marker...), "the host's end"...)
	offsets := make([]int, len(files))
	for i, f := range files {
		offsets[i] = len(out)
		out = append(out, f.content...)
	}
	le.PutUint64(out[slot:], uint64(len(out)))
	out = le.AppendUint32(le.AppendUint32(out, major), 0)
	out = le.AppendUint32(out, uint32(len(files)))
	out = append(out, "\x04name"...)
	out = append(out, make([]byte, 40)...)
	for i, f := range files {
		out = le.AppendUint64(out, uint64(offsets[i]))
		size, stored := len(f.content), 0
		if f.compressed {
			size, stored = 10*size, size
		}
		out = le.AppendUint64(out, uint64(size))
		if major >= version6 {
			out = le.AppendUint64(out, uint64(stored))
		}
		out = append(out, byte(f.kind))
		if n := len(f.path); n < 128 {
			out = append(out, byte(n))
		} else {
			out = append(out, byte(n)|0x80, byte(n>>7))
		}
		out = append(out, f.path...)
	}
	return out
}

func TestRead(t *testing.T) {
	for _, major := range []uint32{version5, version6} {
		files := made
		if major == version5 {
			files = []file{made[0], made[1], made[3]} // it has no compression
		}
		b, err := Read(build(major, files), "p")
		must.True(t, err == nil && len(b.Entries) == len(files) && b.Major == major,
			"version %d: %+v, %v", major, b, err)
		for i, f := range files {
			e, err := b.Find(f.path)
			must.True(t, err == nil && e == &b.Entries[i] && e.Kind == f.kind, "%s: %+v, %v", f.path, e, err)
			got, err := b.Bytes(e)
			if f.compressed != wants(err, Compressed) || !f.compressed && string(got) != f.content {
				t.Errorf("%s: %q, %v", f.path, got, err)
			}
		}
	}
}

func wants(err error, why Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == why
}

func TestReplace(t *testing.T) {
	data := build(version6, made)
	before := bytes.Clone(data)
	b := must.Get(Read(data, "p"))(t)
	e := &b.Entries[1]
	err := b.Replace(&b.Entries[2], []byte("x"))
	expect.True(t, wants(err, Compressed) && bytes.Equal(data, before), "compressed: %v", err)
	must.Do(t, b.Replace(e, []byte("new")))
	again := must.Get(Read(data, "p"))(t)
	got, err := again.Bytes(&again.Entries[1])
	expect.True(t, string(got) == "new" && err == nil, "read again: %q, %v", got, err)
	// Nothing else has changed: with the old bytes restored it is the old file.
	expect.Slices(t, data[e.Offset+3:e.Offset+15], make([]byte, 12), "padding")
	copy(data[e.Offset:], "the old content")
	binary.LittleEndian.PutUint64(data[e.at+8:], 15)
	expect.Slices(t, data, before, "something else has changed")
}

// Content longer than before is appended, at a page.
func TestReplaceLarger(t *testing.T) {
	b, err := Read(build(version6, made), "p")
	must.Do(t, err)
	e := b.Entries[1]
	const long = "sixteen bytes 16"
	must.Do(t, b.Replace(&e, []byte(long)))
	again, err := Read(b.Data, "p")
	must.Do(t, err)
	got, err := again.Bytes(&again.Entries[1])
	expect.True(t, string(got) == long && err == nil && again.Entries[1].Offset%4096 == 0,
		"read again: %q at %d, %v", got, again.Entries[1].Offset, err)
	for _, i := range []int{0, 2} {
		expect.Equal(t, again.Entries[i], b.Entries[i], "entry %d has changed", i)
	}
}

func TestHostile(t *testing.T) {
	le := binary.LittleEndian
	good := build(version6, made)
	at := bytes.Index(good, marker)
	header := le.Uint64(good[at-8:])
	entry := header + 12 + 5 + 40
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		want   Reason
	}{
		{"empty", func([]byte) []byte { return nil }, NoMarker},
		{"marker at the start", func(b []byte) []byte { return b[at:] }, NoMarker},
		{"no bundle", func(b []byte) []byte { le.PutUint64(b[at-8:], 0); return b }, NoBundle},
		{"header outside", func(b []byte) []byte {
			le.PutUint64(b[at-8:],
				uint64(len(b))+1)
			return b
		}, Outside},
		{"header negative", func(b []byte) []byte { le.PutUint64(b[at-8:], 1<<63); return b }, Outside},
		{"header at the end", func(b []byte) []byte {
			le.PutUint64(b[at-8:],
				uint64(len(b)))
			return b
		}, Short},
		{"version 1", func(b []byte) []byte { le.PutUint32(b[header:], 1); return b }, BadVersion},
		{"version 7", func(b []byte) []byte { le.PutUint32(b[header:], 7); return b }, BadVersion},
		{"more entries than bytes",
			func(b []byte) []byte { le.PutUint32(b[header+8:], 1<<31); return b }, Short},
		{"name without end", func(b []byte) []byte {
			b[header+12], b[header+13] = 0xff,
				0xff
			return b
		}, Short},
		{"name longer than the file",
			func(b []byte) []byte { b[header+12], b[header+13] = 0xff, 0x7f; return b }, Short},
		{"content outside", func(b []byte) []byte {
			le.PutUint64(b[entry:],
				uint64(len(b))+1)
			return b
		}, Outside},
		{"content negative", func(b []byte) []byte { le.PutUint64(b[entry:], 1<<63); return b }, Outside},
		{"content too large", func(b []byte) []byte { le.PutUint64(b[entry+8:], 1<<63); return b }, Outside},
		{"packed content too large",
			func(b []byte) []byte { le.PutUint64(b[entry+16:], 1<<63); return b }, Outside},
		{"no path", func(b []byte) []byte { b[entry+25] = 0; return b }, BadString},
	} {
		b, err := Read(c.change(bytes.Clone(good)), c.name)
		expect.True(t, wants(err, c.want), "%s: %v, want %v (%+v)", c.name, err, c.want, b)
	}
	for n := range good {
		_, err := Read(good[:n], "cut")
		must.True(t, err != nil, "%d bytes of %d are a bundle", n, len(good))
	}
	b := must.Get(Read(good, "p"))(t)
	_, err := b.Find("App.dll")
	expect.True(t, wants(err, NoEntry), "no such file: %v", err)
}

// Whatever bytes change, the entries that are read are within the file.
func TestEveryByteChanged(t *testing.T) {
	good := build(version6, made)
	for i := range good {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			data := bytes.Clone(good)
			data[i] = v
			b, err := Read(data, "p")
			if err != nil {
				continue
			}
			for j := range b.Entries {
				b.Bytes(&b.Entries[j])
				b.Replace(&b.Entries[j], nil)
			}
		}
	}
}

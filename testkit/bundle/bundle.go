// Package bundle reads .NET single-file programs and replaces files in them. Some runtimes are only available
// as part of a published program. Tests run their own code on them in this way.
// Sources: dotnet/runtime src/native/corehost/bundle (header.h, file_entry.h, info.cpp) and
// src/installer/managed/Microsoft.NET.HostModel/Bundle.
// Glossary. The *marker* is 32 bytes in the host's data. The eight bytes before the marker are the file
// offset of the *header*. The header begins the *manifest*, which has one entry per file appended to the
// host.
// Strategy: the whole file is in memory and is changed in place; every offset and size is checked before it
// is used.
// Known gaps: compressed files are only listed. Manifests before version 2 (.NET Core 3) are refused.
package bundle

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// marker is the SHA-256 of ".net core bundle".
var marker = []byte{
	0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
	0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
}

// Reason is why a bundle, or a change to it, is refused.
type Reason uint8

const (
	NoMarker   Reason = iota // no single-file host
	NoBundle                 // a host without a bundle
	Short                    // the bytes end before the manifest does
	Outside                  // outside the file
	BadVersion               // unknown version of a manifest
	BadString                // a path that is longer than a manifest allows, or empty
	NoEntry                  // no such file in the bundle
	Compressed               // the file is compressed
)

var reasons = [...]string{"no single-file host", "no bundle", "bytes end too early", "outside the file",
	"unknown version", "no path", "no such file", "compressed"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "reason?"
}

// Error describes a fault in a bundle, and its place.
type Error struct {
	Name      string // the program's
	Structure string // "marker", "header", "entry", or the path of an entry
	Offset    uint64 // of the structure in the file
	Value     uint64 // the refused value
	Reason    Reason
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: bundle %s at %#x: %v (value %#x)", e.Name,
		e.Structure, e.Offset, e.Reason, e.Value)
}

// Kind is the kind of a file in a bundle.
type Kind uint8

const (
	Unknown Kind = iota
	Assembly
	NativeBinary
	DepsJSON
	RuntimeConfig
	Symbols
)

// Entry is a file of a bundle.
type Entry struct {
	Path         string
	Kind         Kind
	Offset, Size uint64
	Compressed   uint64 // size in the file, 0 if it is not compressed
	at           int    // file offset of its entry in the manifest
}

// Bundle is a program with its manifest.
type Bundle struct {
	Data    []byte // the program, which Replace changes
	Major   uint32
	Minor   uint32
	Entries []Entry
	name    string
}

// Read reads the manifest of a program; name is used in errors. It keeps data.
func Read(data []byte, name string) (*Bundle, error) {
	at := bytes.Index(data, marker)
	if at < 8 {
		return nil, &Error{Name: name, Structure: "marker", Offset: uint64(len(data)), Reason: NoMarker}
	}
	header := binary.LittleEndian.Uint64(data[at-8:])
	if header == 0 {
		return nil, &Error{Name: name, Structure: "marker", Offset: uint64(at), Reason: NoBundle}
	}
	if header > uint64(len(data)) {
		return nil, &Error{Name: name, Structure: "marker", Offset: uint64(at),
			Value: header, Reason: Outside}
	}
	b := &Bundle{Data: data, name: name}
	return b, b.manifest(header)
}

// The known manifest versions: of .NET 5, and of .NET 6 and later, which has compressed sizes.
const (
	version5 = 2
	version6 = 6
)

func (b *Bundle) manifest(header uint64) error {
	r := buf.At(b.Data, header)
	b.Major, b.Minor = r.U32(), r.U32()
	count := r.U32()
	if r.OK() && b.Major != version5 && b.Major != version6 {
		return b.fail("header", header, uint64(b.Major), BadVersion)
	}
	text(&r)             // the bundle's own name
	r.Bytes(2*(8+8) + 8) // where deps.json and runtimeconfig.json are; flags
	for i := uint32(0); i < count && r.OK(); i++ {
		e, why := b.entry(&r)
		if !r.OK() {
			break
		}
		if why != nil {
			return why
		}
		b.Entries = append(b.Entries, e)
	}
	if !r.OK() {
		return b.fail("manifest", header, uint64(r.Pos()), Short)
	}
	return nil
}

// entry reads one file's.
func (b *Bundle) entry(r *buf.Reader) (e Entry, why error) {
	e.at = r.Pos()
	e.Offset, e.Size = r.U64(), r.U64()
	if b.Major >= version6 {
		e.Compressed = r.U64()
	}
	e.Kind = Kind(r.U8())
	e.Path = text(r)
	at, stored, room := uint64(e.at), e.stored(), uint64(len(b.Data))
	switch {
	case e.Path == "":
		why = b.fail("entry", at, 0, BadString)
	case e.Offset > room:
		why = b.fail(e.Path, at, e.Offset, Outside)
	case stored > room-e.Offset:
		why = b.fail(e.Path, at, stored, Outside)
	}
	return e, why
}

// stored is the number of bytes the file takes.
func (e *Entry) stored() uint64 {
	if e.Compressed != 0 {
		return e.Compressed
	}
	return e.Size
}

// maxPath bounds a path, in bytes; its length then has two bytes at most.
const maxPath = 1<<14 - 1

// text reads a string with its length before it, seven bits per byte. If it is too long, the result is empty
// and the reader has failed.
func text(r *buf.Reader) string {
	n := int(r.U8())
	if n >= 0x80 {
		n = n&0x7f | int(r.U8())<<7
	}
	if n > maxPath {
		r.Fail(buf.FaultShort)
		return ""
	}
	return string(r.Bytes(uint64(n)))
}

func (b *Bundle) fail(structure string, offset, value uint64, why Reason) error {
	return &Error{Name: b.name, Structure: structure, Offset: offset, Value: value, Reason: why}
}

// Find returns the entry of a path, which is exact.
func (b *Bundle) Find(path string) (*Entry, error) {
	for i := range b.Entries {
		if b.Entries[i].Path == path {
			return &b.Entries[i], nil
		}
	}
	return nil, b.fail(path, 0, 0, NoEntry)
}

// Bytes is the content of a file that is not compressed: a part of b.Data.
func (b *Bundle) Bytes(e *Entry) ([]byte, error) {
	if e.Compressed != 0 {
		return nil, b.fail(e.Path, uint64(e.at), e.Compressed, Compressed)
	}
	return b.Data[e.Offset : e.Offset+e.Size], nil
}

// align is the alignment of content appended at the end: a page, as in the hosts' own builder for precompiled
// code.
const align = 4096

// Replace replaces the content of a file that is not compressed: in place, or at the program's end if it is
// longer. The rest of the old content becomes zeros.
func (b *Bundle) Replace(e *Entry, content []byte) error {
	old, err := b.Bytes(e)
	if err != nil {
		return err
	}
	if len(content) > len(old) {
		clear(old)
		b.Data = append(b.Data, make([]byte, -len(b.Data)&(align-1))...)
		e.Offset = uint64(len(b.Data))
		b.Data = append(b.Data, content...)
	} else {
		clear(old[copy(old, content):])
	}
	e.Size = uint64(len(content))
	binary.LittleEndian.PutUint64(b.Data[e.at:], e.Offset)
	binary.LittleEndian.PutUint64(b.Data[e.at+8:], e.Size) // the field after the offset
	return nil
}

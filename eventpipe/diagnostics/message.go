package diagnostics

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// magic is the start of every message.
var magic = []byte("DOTNET_IPC_V1\x00")

// headerSize is magic, size, set, id, and two bytes that are zero.
const headerSize = 20

// maxMessage is the largest size in 16 bits.
const maxMessage = 1<<16 - 1

// Sets of commands.
const (
	setEventPipe = 2
	setProfiler  = 3
	setProcess   = 4
	setServer    = 0xff
)

// Ids of the server's answers.
const (
	answerOK    = 0x00
	answerError = 0xff
)

// HResult is the runtime's error in answer to a command.
type HResult uint32

// HRESULTs of the protocol.
const (
	BadEncoding    HResult = 0x80131384
	UnknownCommand HResult = 0x80131385
	UnknownMagic   HResult = 0x80131386
)

// HRESULTs of the command that loads a profiler.
const (
	NotYetAvailable HResult = 0x8013135b // the runtime is still starting
	AlreadyActive   HResult = 0x8013136a // it has a profiler
	Cancelled       HResult = 0x80131375 // the profiler ended its initialization: the probe's usual result
)

// Error returns the runtime's error.
func (h HResult) Error() string {
	switch h {
	case BadEncoding:
		return "the runtime did not understand the command (HRESULT 80131384)"
	case UnknownCommand:
		return "the runtime does not know the command (HRESULT 80131385)"
	case UnknownMagic:
		return "the runtime speaks another protocol (HRESULT 80131386)"
	}
	return fmt.Sprintf("the runtime answered HRESULT %08x", uint32(h))
}

// ReplyError is a malformed answer.
type ReplyError struct {
	What string
	Err  error // of the connection
}

func (e *ReplyError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("diagnostics: %s: %v", e.What, e.Err)
	}
	return "diagnostics: " + e.What
}

func (e *ReplyError) Unwrap() error { return e.Err }

// payload builds a command's content.
type payload []byte

func (p *payload) u8(v uint8)   { *p = append(*p, v) }
func (p *payload) u32(v uint32) { *p = binary.LittleEndian.AppendUint32(*p, v) }
func (p *payload) u64(v uint64) { *p = binary.LittleEndian.AppendUint64(*p, v) }

// text appends a string: its length with the zero, UTF-16; an empty one is the
// length alone.
func (p *payload) text(s string) {
	if s == "" {
		p.u32(0)
		return
	}
	units := utf16.Encode([]rune(s))
	p.u32(uint32(len(units) + 1))
	for _, u := range append(units, 0) {
		*p = binary.LittleEndian.AppendUint16(*p, u)
	}
}

// message returns a payload with its header.
func message(set, id uint8, p payload) ([]byte, error) {
	size := headerSize + len(p)
	if size > maxMessage {
		return nil, &ReplyError{What: fmt.Sprintf("a command of %d bytes; there is room for %d", size,
			maxMessage)}
	}
	m := append([]byte(nil), magic...)
	m = binary.LittleEndian.AppendUint16(m, uint16(size))
	return append(append(m, set, id, 0, 0), p...), nil
}

// readAnswer reads an answer's payload. An error of the server is returned as an HResult.
func readAnswer(r io.Reader) ([]byte, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, &ReplyError{"no answer from the runtime", err}
	}
	size := int(binary.LittleEndian.Uint16(head[14:]))
	switch {
	case !bytes.Equal(head[:14], magic):
		return nil, &ReplyError{What: "the answer is of another protocol"}
	case size < headerSize:
		return nil, &ReplyError{What: fmt.Sprintf("an answer of %d bytes", size)}
	}
	body := make([]byte, size-headerSize)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, &ReplyError{"the answer is cut off", err}
	}
	switch set, id := head[16], head[17]; {
	case set == setServer && id == answerOK:
		return body, nil
	case set == setServer && id == answerError && len(body) >= 4:
		return nil, HResult(binary.LittleEndian.Uint32(body))
	default:
		return nil, &ReplyError{What: fmt.Sprintf("an answer of set %#x, id %#x, %d bytes", set,
			id, len(body))}
	}
}

// cursor reads an answer's payload.
type cursor struct{ buf.Reader }

func (c *cursor) text() string {
	b := c.Bytes(2 * uint64(c.U32()))
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	if n := len(units); n > 0 && units[n-1] == 0 {
		units = units[:n-1]
	}
	return string(utf16.Decode(units))
}

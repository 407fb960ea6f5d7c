package nettrace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// chunk bounds an allocation before its bytes have arrived.
const chunk = 1 << 20

// source reads bytes and counts their offset.
type source struct {
	r   *bufio.Reader
	off int64
}

// fail converts an error of the source to an *Error.
func (s *source) fail(err error, what string) *Error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &Error{Reason: Truncated, Offset: s.off, What: what}
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Reason: ReadFailed, Offset: s.off, What: what, Err: err}
}

// full fills p and returns the number of bytes read.
func (s *source) full(p []byte, what string) (int, *Error) {
	n, err := io.ReadFull(s.r, p)
	s.off += int64(n)
	if err != nil {
		return n, s.fail(err, what)
	}
	return n, nil
}

func (s *source) u8(what string) (byte, *Error) {
	b, err := s.r.ReadByte()
	if err != nil {
		return 0, s.fail(err, what)
	}
	s.off++
	return b, nil
}

func (s *source) u32(what string) (uint32, *Error) {
	var b [4]byte
	_, err := s.full(b[:], what)
	return binary.LittleEndian.Uint32(b[:]), err
}

// block reads size bytes into buf's memory. On an error, it also
// returns the bytes before it.
func (s *source) block(buf []byte, size int, what string) ([]byte, *Error) {
	buf = buf[:0]
	for len(buf) < size {
		n := min(size-len(buf), max(chunk, cap(buf)-len(buf)))
		buf = append(buf, make([]byte, n)...)
		got, err := s.full(buf[len(buf)-n:], what)
		if err != nil {
			return buf[:len(buf)-n+got], err
		}
	}
	return buf, nil
}

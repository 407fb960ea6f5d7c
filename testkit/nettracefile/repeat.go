package nettracefile

import (
	"bytes"
	"io"
)

// repeated is a trace that consists of a head and copies of one piece.
type repeated struct {
	piece, in []byte
	left      int
	change    func(piece []byte)
}

// Repeat returns a trace of about size bytes without an end mark. After the descriptions, it repeats a piece:
// 500 stacks of depth addresses, with the numbers from 1 on, the events, and a sequence point. change changes
// the piece before each reading, if it is not nil.
func Repeat(size, depth int, meta []Meta, events []Event, change func(piece []byte)) io.Reader {
	w := New(Options{}).Metadata(meta...)
	w.Stacks(1) // a piece begins and ends after such a block, so that it needs the same padding
	r := &repeated{in: bytes.Clone(w.Bytes()), left: size, change: change}
	w.Reset()
	w.Raw(make([]byte, len(r.in)%4)...)
	skip := w.Len()
	stacks := make([][]uint64, 500)
	for i := range stacks {
		for j := range depth {
			stacks[i] = append(stacks[i], 0x1000+(uint64(i*j)*0x9e3779b97f4a7c15)>>44)
		}
	}
	w.Stacks(1, stacks...).Events(events...).Point(1e9).Stacks(1)
	r.piece = w.Bytes()[skip:]
	return r
}

// Read implements io.Reader.
func (r *repeated) Read(p []byte) (int, error) {
	if len(r.in) == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}
		if r.change != nil {
			r.change(r.piece)
		}
		r.in, r.left = r.piece, r.left-len(r.piece)
	}
	n := copy(p, r.in)
	r.in = r.in[n:]
	return n, nil
}

// Package raw records and reads raw samples: registers, the copied stack, the CLR's report, and the merged
// result. Raw files are input for the truth tests and for other unwinders, and let a vendor replay a wrong
// stack.
//
// Layout: "SWRAW004", then records of u8 kind, u32 length, payload; integers are little-endian 64-bit words,
// strings a word of length and the bytes. A reader skips records of unknown kinds.
//
// Source: the format is seedwalk's own; its version increases with every change.
//
// Glossary. A sample is *raw* before it is interpreted: another walker can walk the same bytes.
//
// Strategy: written in one pass, read in one pass, with a reused buffer for a record. A reader checks every
// length against the bytes that are present.
//
// Known gaps: only the current version is read.
package raw

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// magic's last three digits are the version: 004 has registers of either
// architecture.
const magic, family = "SWRAW004", "SWRAW"

const (
	kindTable  = 'T'
	kindSample = 'S'
	kindMethod = 'M'
)

// maxRecord bounds one record: a stack copy and its frames.
const maxRecord = 64 << 20

// Image is a module as the profiler saw it.
type Image struct {
	ID               uint32
	Start, End, Bias uint64
	Path, BuildID    string
}

// Sample is one recorded sample.
type Sample struct {
	Capture clr.Capture
	Result  merge.Result
	Frames  []merge.Frame
	Images  []Image // the current table; Frame.Module is an index of it
}

// Writer writes raw samples to a file. A nil Writer drops everything.
type Writer struct {
	f   *os.File
	w   *bufio.Writer
	buf []byte
	err error
}

// Create makes or truncates the file.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f, w: bufio.NewWriterSize(f, 1<<20)}
	_, w.err = w.w.WriteString(magic)
	return w, w.err
}

// Close flushes and closes the file; it returns the first error of the Writer.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	return errors.Join(w.err, w.w.Flush(), w.f.Close())
}

// Flush writes the buffered records.
func (w *Writer) Flush() error {
	if w == nil {
		return nil
	}
	return errors.Join(w.err, w.w.Flush())
}

func (w *Writer) word(v uint64)   { w.buf = binary.LittleEndian.AppendUint64(w.buf, v) }
func (w *Writer) bytes(b []byte)  { w.word(uint64(len(b))); w.buf = append(w.buf, b...) }
func (w *Writer) string(s string) { w.word(uint64(len(s))); w.buf = append(w.buf, s...) }

// registers writes the architecture and its registers, and only the architecture if there are none.
func (w *Writer) registers(r *context.Registers) {
	w.word(uint64(r.Arch))
	switch r.Arch {
	case context.ArchAMD64:
		w.amd64(&r.AMD64)
	case context.ArchARM64:
		w.arm64(&r.ARM64)
	}
}

func (w *Writer) arm64(r *context.ARM64) {
	w.word(r.Known)
	w.word(r.PC)
	w.word(r.Sp)
	for _, v := range r.X {
		w.word(v)
	}
	for _, v := range r.D {
		w.word(v)
	}
}

// amd64 writes XMM6-XMM15 only if one is known, as on Windows.
func (w *Writer) amd64(r *context.AMD64) {
	w.word(uint64(r.Known))
	w.word(r.RIP)
	for _, v := range r.GPR {
		w.word(v)
	}
	if r.Known&xmmKnown == 0 {
		return
	}
	for _, x := range r.XMM {
		w.word(x[0])
		w.word(x[1])
	}
}

// xmmKnown are the bits of XMM6-XMM15 in context.AMD64.Known.
const xmmKnown = 0x3ff << 16

func (w *Writer) emit(kind byte) {
	var head [5]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(w.buf)))
	for _, b := range [][]byte{head[:], w.buf} {
		if w.err == nil {
			_, w.err = w.w.Write(b)
		}
	}
	w.buf = w.buf[:0]
}

// Table records the module table that is current from here on.
func (w *Writer) Table(t *module.Table) {
	if w == nil {
		return
	}
	w.word(uint64(t.Len()))
	for i := range t.Len() {
		m := t.At(i)
		w.word(uint64(m.ID))
		w.word(m.Start)
		w.word(m.End)
		w.word(m.Bias)
		w.string(m.Path)
		w.string(m.BuildID)
	}
	w.emit(kindTable)
}

// Method records the name of a managed method. It may follow the samples that contain it.
func (w *Writer) Method(f clr.FunctionID, name string) {
	if w == nil {
		return
	}
	w.word(uint64(f))
	w.string(name)
	w.emit(kindMethod)
}

// Sample records one capture and its merged stack.
func (w *Writer) Sample(c *clr.Capture, r *merge.Result, frames []merge.Frame) {
	if w == nil {
		return
	}
	for _, v := range []uint64{uint64(c.Thread.ID), c.Thread.TID, c.Thread.StackLow, c.Thread.StackHigh,
		uint64(c.Status), flag(c.Truncated), flag(c.Full), uint64(c.Result)} {
		w.word(v)
	}
	w.registers(&c.Regs)
	w.word(flag(c.Seeded))
	if c.Seeded {
		w.registers(&c.Seed)
	}
	w.word(c.Stack.Addr)
	w.bytes(c.Stack.Data)
	w.word(c.Below.Addr)
	w.bytes(c.Below.Data)
	w.word(uint64(len(c.Frames)))
	for i := range c.Frames {
		f := &c.Frames[i]
		for _, v := range []uint64{uint64(f.Function), f.IP, f.SP, f.FP} {
			w.word(v)
		}
		for _, v := range f.Saved {
			w.word(v)
		}
	}
	for _, v := range []int{int(r.Gap), int(r.Verdict), r.Managed, r.Hidden, r.Doubtful} {
		w.word(uint64(v))
	}
	w.word(uint64(len(frames)))
	for i := range frames {
		f := &frames[i]
		for _, v := range []uint64{f.IP, f.SP, f.FP, uint64(f.Function), uint64(int64(f.Module)),
			uint64(f.Kind), uint64(f.Trust), uint64(f.Gap), flag(f.Exact)} {
			w.word(v)
		}
	}
	w.emit(kindSample)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
